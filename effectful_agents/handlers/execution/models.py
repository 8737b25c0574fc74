"""Pydantic models of the program, as restricted code may use them."""

from __future__ import annotations

from typing import Any

import pydantic

from effectful_agents.handlers.execution.kinds import owner_of

__all__ = ["check_model_name", "is_model", "validated"]

_OFFERED = frozenset(
    {"model_dump", "model_dump_json", "model_validate", "model_validate_json", "model_copy", "model_fields_set"}
)
"""What is offered of all that pydantic gives a model. The rest opens files, evaluates texts, or changes it."""

_GIVEN = frozenset({*dir(pydantic.BaseModel), *dir(type(pydantic.BaseModel))})


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
    cls: Any = obj if issubclass(kind, type) else kind
    if not is_model(cls) or name in _OFFERED or name.startswith("__"):
        return
    is_field = obj is not cls and name in cls.__pydantic_fields__
    owner = owner_of(obj, name).__module__.partition(".")[0]
    if name.startswith("model_") and name in _GIVEN:  # every class has these of its own
        owner = "pydantic"
    if owner in ("pydantic", "abc") and name in _GIVEN and not is_field:
        raise AttributeError(
            f"`{name}` of a pydantic model is not available here. "
            f"There are its fields and {', '.join(sorted(_OFFERED))}."
        )


def validated(validate: Any, /, *args: Any, **options: Any) -> Any:
    """Call `model_validate`.

    Raises:
        TypeError: It is to read the attributes of something, past the guards.
    """
    if options.get("from_attributes"):
        raise TypeError("`from_attributes` reads what is not available here; give a dictionary.")
    return validate(*args, **options)
