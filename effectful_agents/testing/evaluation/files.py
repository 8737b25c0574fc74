"""Rows of an evaluation in a file of JSON lines."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from effectful_agents.encoding import decode, encode
from effectful_agents.errors import AgentsError, StorageError
from effectful_agents.messages import Usage
from effectful_agents.testing.evaluation.cases import Case
from effectful_agents.testing.evaluation.rows import Failure, Row

__all__ = ["read", "write"]

_AS_TEXT = "$repr"
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def write(path: str | os.PathLike[str], name: str, rows: Sequence[Row[Any]], *, messages: bool) -> None:
    """Write rows, and the name of what was evaluated in each."""
    lines = [json.dumps(_written(name, row, messages=messages), ensure_ascii=False) + "\n" for row in rows]
    Path(path).write_text("".join(lines), encoding="utf-8", newline="\n")


def _written(name: str, row: Row[Any], *, messages: bool) -> dict[str, Any]:
    case = row.case
    return {
        "evaluation": name,
        "case": case.name,
        "trial": row.trial,
        "args": [_json(value) for value in case.args],
        "kwargs": {key: _json(value) for key, value in case.kwargs.items()},
        **({"expected": _json(case.expected)} if case.has_expected else {}),
        "metadata": _json(case.metadata),
        "output": _json(row.output),
        "scores": dict(row.scores),
        "notes": dict(row.notes),
        "failures": [dataclasses.asdict(each) for each in row.failures],
        "seconds": row.seconds,
        "usage": dataclasses.asdict(row.usage),
        "cost": row.cost,
        **({"messages": _json(list(row.messages))} if messages else {}),
    }


def _json(value: Any) -> Any:
    try:
        encoded = encode(value)
        json.dumps(encoded)
        return encoded
    except (AgentsError, ValueError, RecursionError):
        return {_AS_TEXT: _repr(value)}


def _repr(value: Any) -> str:
    try:
        return _ADDRESS.sub("", repr(value))
    except Exception as error:
        return f"a {type(value).__name__}, whose repr raises {type(error).__name__}"


def read(path: str | os.PathLike[str], output: Any) -> tuple[str, list[Row[Any]]]:
    """The name of what was evaluated, and the rows.

    Raises:
        StorageError: The file cannot be read, or a line of it is no row.
    """
    name, rows = "", []
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"the evaluation cannot be read: {error}", path=str(path)) from error
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                given = json.loads(line)
                name = given["evaluation"]
                rows.append(_row(given, output))
            except (KeyError, TypeError, ValueError) as error:
                raise StorageError(
                    f"line {number} of {Path(path).name} is no row of an evaluation ({type(error).__name__}: {error}).",
                    path=str(path),
                ) from error
    return name, rows


def _row(given: Mapping[str, Any], output: Any) -> Row[Any]:
    case = Case(*given["args"], expected=given.get("expected", ...), metadata=given["metadata"])
    object.__setattr__(case, "kwargs", given["kwargs"])
    failures = tuple(Failure(**each) for each in given["failures"])
    value = given["output"]
    failed = any(not each.scorer for each in failures)
    if output is not Any and not failed and not (isinstance(value, dict) and _AS_TEXT in value):
        value = decode(json.dumps(value), output)
    return Row(
        case.named(given["case"]),
        value,
        given["scores"],
        given["notes"],
        failures,
        given["trial"],
        given["seconds"],
        Usage(**given["usage"]),
        given["cost"],
        tuple(given.get("messages", ())),
    )
