"""A manifest as a person reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from effectful_agents.encoding.questions import printable_text

if TYPE_CHECKING:
    from effectful_agents.handlers.policy.manifest import CompositionManifest

__all__ = ["CODE", "text_of"]

CODE: Mapping[str, str] = {
    "none": "nothing runs code that the model writes",
    "builtin": "code that the model writes runs as plain Python in this process, and may do anything that it may",
    "restricted": "code that the model writes runs in a part of Python without a way to files, network and processes",
}
"""What each kind of executor means."""


def text_of(manifest: CompositionManifest, *, unseen: str = "") -> str:
    """The manifest in lines: what matters most first.

    Args:
        manifest: The manifest.
        unseen: What else may be installed when the program runs, where that is not known.
    """
    # What a handler says of itself is in one line: it is not to look like what the manifest says of all.
    return "\n".join(map(printable_text, _lines(manifest, unseen)))


def _lines(manifest: CompositionManifest, unseen: str) -> Iterator[str]:
    yield f"composition {manifest.digest}"
    yield f"authority    {_authority(manifest, unseen)}"
    yield f"code         {CODE.get(manifest.code, f'code that the model writes is run by {manifest.code}')}"
    if manifest.stages:
        yield f"stages       {', '.join(manifest.stages)}"
    yield from _section("handlers, outermost first", map(_handler, manifest.handlers))
    for several, one in (("grants", "grant"), ("policies", "policy"), ("preconditions", "precondition")):
        yield from _section(several, ([row["handler"], str(row[one])] for row in getattr(manifest, several)))
    limits = ([row["handler"], row["limit"], _short(row["value"])] for row in manifest.limits)
    yield from _section("limits", limits)
    if manifest.skills:
        names = ", ".join(row["skill"] for row in manifest.skills)
        tools = [_tool(row, many=len(manifest.skills) > 1) for row in manifest.tools]
        yield from _section(f"tools that are offered to {names}, before routing", tools or [["none"]])
    yield from _section("versions, which are no part of the digest", map(list, manifest.versions.items()))


def _authority(manifest: CompositionManifest, unseen: str) -> str:
    if manifest.enforcement.startswith("decided"):
        return f"{manifest.enforcement}; {unseen} is not seen" if unseen else manifest.enforcement
    if unseen:
        return f"nothing that is described here decides; {unseen} is not seen"
    return f"{manifest.enforcement}: a tool that is offered is called whenever the model asks for it"


def _handler(row: Mapping[str, Any]) -> list[str]:
    operations = ", ".join(row["operations"])
    if "functions" in row:
        operations = ", ".join(f"{operation} by {function}" for operation, function in row["functions"].items())
    said = {name: value for name, value in row.get("states", {}).items() if name not in _ELSEWHERE}
    return [row["handler"], operations + (f"; {_short(said)}" if said else "")]


_ELSEWHERE = frozenset({"stages", "grants", "limits", "policies", "preconditions", "code"})
"""What stands in the text by itself."""


def _tool(row: Mapping[str, Any], *, many: bool) -> list[str]:
    schema = "by an expression" if row["schema"] is None else row["schema"][:12]
    return [row["tool"], row["risk"], row["effect"], schema, *([", ".join(row["skills"])] if many else [])]


def _section(title: str, rows: Iterable[Sequence[str]]) -> Iterator[str]:
    table = [list(row) for row in rows]
    if not table:
        return
    yield ""
    yield title
    width = [max(len(row[column]) for row in table if column < len(row)) for column in range(max(map(len, table)))]
    for row in table:
        yield "  " + "  ".join(cell.ljust(width[column]) for column, cell in enumerate(row)).rstrip()


def _short(value: Any, *, inside: bool = False) -> str:
    if isinstance(value, Mapping):
        parts = ", ".join(f"{name}={_short(part, inside=True)}" for name, part in value.items())
        return f"({parts})" if inside else parts
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
