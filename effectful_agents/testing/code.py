"""Python that fits where a schema asks for some: code that does nothing, and functions that return something simple."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["code_like"]

_CODE = ("code", "source", "expression")
_FUNCTION = re.compile(r"The source of a function of the type `(Callable\[.*?\])`:")
_VALUES = {
    "bool": "True",
    "int": "1",
    "float": "1.0",
    "str": '"text"',
    "bytes": 'b"text"',
    "None": "None",
    "list": "[]",
    "tuple": "()",
    "dict": "{}",
    "set": "set()",
    "Any": "None",
    "object": "None",
}


def code_like(schema: Mapping[str, Any], name: str) -> str | None:
    """What a property of an object is written as that is Python; None for one that is none.

    >>> text = "The source of a function of the type `Callable[[str, int], bool]`: its `def`."
    >>> print(code_like({"description": text, "properties": {"code": {"type": "string"}}}, "code"))
    def function(a: str, b: int) -> bool:
        return True
    """
    part = schema.get("properties", {}).get(name, {})
    if name not in _CODE or not isinstance(part, Mapping) or part.get("type") != "string":
        return None
    if "enum" in part or "const" in part or "pattern" in part:
        return None
    found = _FUNCTION.search(schema.get("description", ""))
    return "None" if found is None else _function(found[1])  # a value that is a statement too


def _function(annotation: str) -> str:
    node = ast.parse(annotation, mode="eval").body
    assert isinstance(node, ast.Subscript)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    given = parts[0].elts if isinstance(parts[0], ast.List) else []
    result = ast.unparse(parts[-1]) if len(parts) > 1 else "None"
    parameters = ", ".join(f"{chr(ord('a') + place)}: {ast.unparse(one)}" for place, one in enumerate(given))
    if not isinstance(parts[0], ast.List):
        parameters = "*args: object, **kwargs: object"
    value = _VALUES.get(result.partition("[")[0])
    body = "raise NotImplementedError" if value is None else f"return {value}"
    return f"def function({parameters}) -> {result}:\n    {body}"
