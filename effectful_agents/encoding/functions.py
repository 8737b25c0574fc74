"""Functions on the wire: a model writes the source of one, and is shown the source of another.

What is made of a source, and how it is checked before, is up to the handlers of `effectful_agents.operations.code`.
"""

from __future__ import annotations

import ast
import collections.abc
import contextlib
import inspect
import textwrap
import traceback
import typing
from collections.abc import Callable, Generator, Mapping
from pathlib import PurePath
from typing import Annotated, Any

import pydantic
from pydantic_core import PydanticCustomError

from effectful_agents.encoding.marks import CODEC
from effectful_agents.encoding.names import type_name
from effectful_agents.encoding.registry import Codec
from effectful_agents.encoding.source_text import last_function, parameters_of
from effectful_agents.encoding.splicing import SplicedRegion, splice_function
from effectful_agents.errors import EncodingError, describe_exception
from effectful_agents.generated import generated_name, is_generated_name
from effectful_agents.operations import code
from effectful_agents.operations.doctests import ENDS_CALL
from effectful_agents.runtime import interpretation
from effectful_agents.types import Scope, Skill

__all__ = [
    "ANY_FUNCTION",
    "ENDS_CALL",
    "PROBLEM",
    "EncodedFunction",
    "FunctionOf",
    "SynthesizedFunction",
    "called_skill",
    "made_function",
    "runs_code",
    "source_of_function",
    "told_as_problem",
]

PROBLEM = "generated_code"
"""Pydantic's type of the errors about code: they may be long, a diagnosis or a traceback."""

_SOURCE = "__synthesized__"


class EncodedFunction(pydantic.BaseModel):
    """A function as its source.

    Attributes:
        code: The whole source.
    """

    model_config = pydantic.ConfigDict(extra="forbid")

    code: str


class SynthesizedFunction(EncodedFunction):
    """A function as a model writes it: imports and helpers, and last the function itself.

    Each of its parameters, and its result, has an annotation. Its docstring stays, and the examples in it are run.
    """


def runs_code() -> bool:
    """Whether an executor is installed here."""
    return code.exec in interpretation()


@contextlib.contextmanager
def told_as_problem() -> Generator[None]:
    """Let what is wrong with code be told to the model in full, wherever it is found while a value is decoded."""
    try:
        yield
    except (PydanticCustomError, *ENDS_CALL):
        raise
    except Exception as error:
        raise PydanticCustomError(PROBLEM, "{problem}", {"problem": _problem(error)}) from error


def _problem(error: Exception) -> str:
    if isinstance(error, SyntaxError):
        text = "".join(traceback.format_exception_only(error)).strip()
        return text if error.filename is None else text.replace(error.filename, PurePath(error.filename).name)
    if isinstance(error, TypeError | ValueError) and not _is_raised_by_code(error):
        return str(error)  # a diagnosis, which is a text for the model already
    return describe_exception(error)


def _is_raised_by_code(error: BaseException) -> bool:
    return any(is_generated_name(frame.filename) for frame in traceback.extract_tb(error.__traceback__))


def called_skill(context: Any) -> Skill | None:
    """The skill that is being answered, where a decoding is told."""
    return context.skill if isinstance(context, Scope) else None


# --- from source to function ------------------------------------------------------------------------------------------


def made_function(
    source: str,
    names: Mapping[str, Any],
    *,
    label: str,
    check: Callable[[ast.FunctionDef | ast.AsyncFunctionDef], None] = lambda _: None,
    splice: Callable[[], SplicedRegion],
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Make the function that a source ends with: it is parsed, checked, compiled and executed.

    Args:
        source: Imports, helpers, and last a `def`.
        names: What it sees besides.
        label: What tracebacks call the file.
        check: What the definition has to be; it raises ValueError.
        splice: The source in its place in a module, which is what is type-checked.

    Returns:
        The function, and the namespace that it was made in.

    Raises:
        SyntaxError: It is no Python.
        ValueError: It does not end with a function, or not with the right one.
        TypeError: It does not pass the type check.
        Exception: Whatever it raises itself.
    """
    filename = generated_name(source, label)
    tree = code.parse(source, filename)
    definition = last_function(tree)
    check(definition)
    code.type_check(*splice())
    namespace = dict(names)
    namespace.pop("__annotations__", None)  # the module's own
    code.exec(code.compile(tree, filename), namespace)
    function = namespace[definition.name]
    if not callable(function):
        raise ValueError(f"`{definition.name}` is no function once its decorators have had it.")
    with contextlib.suppress(AttributeError):  # an object without attributes, made by a decorator
        setattr(function, _SOURCE, source)
    return function, namespace


def _check_annotated(definition: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    missing = [f"`{one.arg}`" for one in parameters_of(definition) if one.annotation is None]
    if definition.returns is None:
        missing.append("the result")
    if missing:
        raise ValueError(f"`{definition.name}` has no annotation for {' and '.join(missing)}. Annotate all of it.")


def _check_takes(function: Callable[..., Any], parameters: Any) -> None:
    """Refuse a function that cannot be called with so many arguments."""
    if not isinstance(parameters, list):
        return
    try:
        inspect.signature(function).bind(*parameters)
    except TypeError as error:
        name, count = getattr(function, "__name__", "it"), len(parameters)
        raise ValueError(
            f"`{name}` will be called with {count} by position, and does not take them: {error}."
        ) from error


# --- the type of functions --------------------------------------------------------------------------------------------


class FunctionOf:
    """How functions of one type are written: metadata for the annotation `Callable[[int], str]`.

    Pydantic knows of such an annotation only that it is one of a function.
    """

    def __init__(self, tp: Any) -> None:
        self.type = tp

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return {"type": "callable", "metadata": {CODEC: _codec(self.type)}}


def _codec(tp: Any) -> Codec:
    about = (
        f"The source of a function of the type `{type_name(tp)}`: imports and helpers, and last its `def`, with an "
        "annotation for each parameter and for the result."
    )
    form = Annotated[SynthesizedFunction, pydantic.Field(description=about)]
    return Codec(form, _write, lambda written, context: _read(written, context, tp), runs_code=True)


def _read(written: SynthesizedFunction, context: Any, tp: Any) -> Callable[..., Any]:
    names = context if isinstance(context, Mapping) else {}
    parameters = next(iter(typing.get_args(tp)), ...)
    with told_as_problem():
        function, namespace = made_function(
            written.code,
            names,
            label="function",
            check=_check_annotated,
            splice=lambda: splice_function(written.code, tp, called_skill(context), names),
        )
        _check_takes(function, parameters)
        code.run_doctests(function, namespace)
    return function


def _write(function: Any) -> SynthesizedFunction:
    return SynthesizedFunction.model_construct(code=source_of_function(function))


def source_of_function(function: Any) -> str:
    """The source of a function; of one that a model wrote, with the imports and helpers that it wrote.

    Raises:
        EncodingError: The function has none.
    """
    known = getattr(function, _SOURCE, None)
    if isinstance(known, str):
        return known
    kind = type(function).__name__
    if getattr(function, "__name__", "") == "<lambda>":
        raise EncodingError(f"a value of type `{kind}` cannot be encoded; a lambda has no source of its own.")
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise EncodingError(f"a value of type `{kind}` cannot be encoded; its source is not known.") from error


ANY_FUNCTION = _codec(collections.abc.Callable)
"""The codec of an annotation that says no more than that it is a function."""
