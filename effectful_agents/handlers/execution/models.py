"""Pydantic models of the program, as restricted code may use them."""

from __future__ import annotations

from typing import Any

import pydantic

from effectful_agents.handlers.execution.kinds import owner_of

__all__ = ["check_model_name", "is_model"]

_OFFERED = frozenset(
    {"model_dump", "model_dump_json", "model_validate", "model_validate_json", "model_copy", "model_fields_set"}
)
"""What is offered of all that pydantic gives a model. The rest opens files, unpickles, evaluates texts, or changes it."""


def is_model(cls: type) -> bool:
    """Whether a class is a pydantic model.

    >>> is_model(pydantic.BaseModel), is_model(int)
    (True, False)
    """
    return pydantic.BaseModel in type.__dict__["__mro__"].__get__(cls)


def check_model_name(obj: Any, name: str) -> None:
    """Raise if an attribute of a model, or of a class of models, is one of pydantic's that is not offered.

    Raises:
        AttributeError: It is.
    """
    kind: type = super.__self_class__.__get__(obj) if type(obj) is super else type(obj)  # ty: ignore[missing-attribute]
    cls = obj if issubclass(kind, type) else kind
    if not is_model(cls) or name in _OFFERED or name.startswith("__"):
        return
    is_field = obj is not cls and name in cls.__pydantic_fields__
    owner = owner_of(obj, name).__module__.partition(".")[0]
    if name.startswith("model_") and hasattr(pydantic.BaseModel, name) and not is_field:
        owner = "pydantic"
    if owner in ("pydantic", "abc") and not is_field and hasattr(obj, name):
        raise AttributeError(
            f"`{name}` of a pydantic model is not available here; there are its fields, and {', '.join(sorted(_OFFERED))}."
        )
