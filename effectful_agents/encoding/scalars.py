"""Core schemas of single values, in the place of pydantic's: what those would guess, or could not read back."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from pydantic_core import PydanticCustomError, PydanticKnownError, core_schema

from effectful_agents.encoding import binary
from effectful_agents.encoding.choices import Among, choice, flag_names, flag_of, written_members
from effectful_agents.encoding.marks import MARK, Writer, shown
from effectful_agents.encoding.moments import limits_of, moment

__all__ = ["REWRITTEN", "written_literal"]

_FINITE = r"-?[0-9]+(\.[0-9]+)?(E[+-]?[0-9]+)?"
_DECIMAL = f"^{_FINITE}$"
_ANY_DECIMAL = f"^({_FINITE}|-?Infinity|NaN)$"
_TEXT_WANTED = PydanticCustomError("decimal_type", "Input should be a number as text")


def _as_text(value: Any) -> Any:
    """Refuse JSON numbers, in which digits may have been lost, and the NaN that raises where it is compared."""
    if isinstance(value, int | float) or (isinstance(value, str) and "snan" in value.lower()):
        raise _TEXT_WANTED
    return value


def _no_number(value: Any) -> Any:
    if isinstance(value, int | float):
        raise PydanticKnownError("complex_type")
    return value


_LENGTHS = {"min_length": "at least {} bytes", "max_length": "at most {} bytes"}


def _with(node: Any, **options: Any) -> Any:
    return {**node, **options}


def _scalar(node: Any) -> Any:
    return {"strict": True, **node}


def _bytes(node: Any) -> Any:
    limits = [text.format(node[key]) for key, text in _LENGTHS.items() if key in node]
    about = {**binary.SCHEMA, "description": "; ".join([binary.SCHEMA["description"], *limits])}
    schema = core_schema.no_info_before_validator_function(
        binary.read, node, metadata={MARK: Writer(bytes, binary.write, inner=False)} | shown(about)
    )
    schema["serialization"] = core_schema.plain_serializer_function_ser_schema(binary.write)
    return core_schema.json_or_python_schema(schema, node)


def _decimal(node: Any) -> Any:
    schema: Any = {"type": "string", "pattern": _DECIMAL}
    if limits := limits_of(node):
        schema["description"] = f"a decimal number, {limits}"
    elif node.get("allow_inf_nan", True):  # as a float
        schema["pattern"] = _ANY_DECIMAL
        node = _with(node, allow_inf_nan=True)
    read = core_schema.no_info_before_validator_function(_as_text, {**node, "strict": False}, metadata=shown(schema))
    return core_schema.json_or_python_schema(read, node)


def _fraction(node: Any) -> Any:
    schema = {"type": "string", "description": "a fraction, as 3/4"}
    read = core_schema.no_info_before_validator_function(_as_text, {**node, "strict": False}, metadata=shown(schema))
    return core_schema.json_or_python_schema(read, node)


def _complex(node: Any) -> Any:
    # The function hands on a Python text, which the strict form of the node would refuse.
    schema = {"type": "string", "description": "a complex number, as 1+2j"}
    read = core_schema.no_info_before_validator_function(_no_number, {**node, "strict": False}, metadata=shown(schema))
    return core_schema.json_or_python_schema(read, node)


# --- few values -------------------------------------------------------------------------------------------------------


def _enum(node: Any) -> Any:
    cls = node["cls"]
    pairs = written_members(cls)
    if issubclass(cls, enum.Flag):
        form = core_schema.list_schema(choice(pairs, error="enum"))
        read = core_schema.no_info_after_validator_function(
            lambda members: flag_of(cls, members),
            form,
            metadata={MARK: Writer(cls, lambda value: flag_names(cls, value), inner=False)},
        )
        return core_schema.json_or_python_schema(
            read, core_schema.union_schema([core_schema.is_instance_schema(cls), read], mode="left_to_right")
        )
    forms = {member.name: form for form, member in pairs}
    schema: Any = choice(pairs, error="enum", kind=cls)
    schema["metadata"][MARK] = Writer(cls, lambda value: forms[value.name], inner=False)
    schema["metadata"]["pydantic_js_functions"] = _with_docstring(schema, cls)
    schema["serialization"] = core_schema.plain_serializer_function_ser_schema(lambda value: forms[value.name])
    return schema


def _literal(node: Any) -> Any:
    expected = node["expected"]
    if all(type(value) is str for value in expected):
        return node
    pairs = [(written_literal(value), value) for value in expected]
    among = Among({(type(value), value): form for form, value in pairs})
    schema: Any = choice(pairs, error="literal_error")
    schema["metadata"][MARK] = Writer(among, among.write, inner=False)
    schema["serialization"] = core_schema.plain_serializer_function_ser_schema(among.write)
    return schema


def _with_docstring(schema: Any, cls: type[enum.Enum]) -> list[Any]:
    [form] = schema["metadata"]["pydantic_js_functions"]
    doc = (
        cls.__doc__
        if cls.__doc__ not in (None, "An enumeration.", *(base.__doc__ for base in cls.__mro__[1:]))
        else None
    )
    if doc is None:
        return [form]
    text = " ".join(doc.split("\n\n")[0].split())
    return [lambda core, handler: {"description": text, **form(core, handler)}]


def written_literal(value: Any) -> Any:
    """The written form of a value that a Literal names."""
    if isinstance(value, enum.Enum):
        return next(form for form, member in written_members(type(value)) if member is value)
    return binary.write(value) if isinstance(value, bytes) else value


REWRITTEN: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("int", "float", "bool", "str"), _scalar),
    "complex": _complex,
    "fraction": _fraction,
    **dict.fromkeys(("date", "datetime", "time", "timedelta"), moment),
    "bytes": _bytes,
    "decimal": _decimal,
    "enum": _enum,
    "literal": _literal,
}
"""What takes the place of pydantic's core schemas, by their type."""
