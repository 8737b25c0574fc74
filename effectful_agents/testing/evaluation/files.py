"""Rows of an evaluation in a file of JSON lines."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from effectful_agents.encoding import decode, encode
from effectful_agents.errors import AgentsError, StorageError
from effectful_agents.messages import Usage
from effectful_agents.testing.evaluation.cases import Case
from effectful_agents.testing.evaluation.rows import Failure, Row
from effectful_agents.testing.evaluation.scoring import LARGEST

__all__ = ["as_json", "is_vague", "read", "write"]

_AS_TEXT = "$repr"
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def write(path: str | os.PathLike[str], name: str, rows: Sequence[Row[Any]], *, messages: bool) -> None:
    """Write rows, and the name of what was evaluated in each. What was there stays as it is until all is written.

    Raises:
        OSError: The file cannot be written.
    """
    written = b"".join(_line(_written(name, row, messages=messages)) for row in rows)
    path = Path(os.path.realpath(path))  # what a link leads to is replaced, and not the link
    if path.exists() and not path.is_file():
        path.write_bytes(written)  # a pipe, say
        return
    beside = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        beside.write_bytes(written)
        if path.exists():
            shutil.copymode(path, beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _line(given: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(given, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair, in a name, say: as an escape it survives
        return json.dumps(given).encode() + b"\n"


def _written(name: str, row: Row[Any], *, messages: bool) -> dict[str, Any]:
    case = row.case
    return {
        "evaluation": name,
        "case": case.name,
        "trial": row.trial,
        "args": [as_json(value) for value in case.args],
        "kwargs": {key: as_json(value) for key, value in case.kwargs.items()},
        **({"expected": as_json(case.expected)} if case.has_expected else {}),
        "metadata": as_json(case.metadata),
        "output": as_json(row.output),
        "scores": dict(row.scores),
        "notes": dict(row.notes),
        "failures": [dataclasses.asdict(each) for each in row.failures],
        "seconds": row.seconds,
        "usage": dataclasses.asdict(row.usage),
        "cost": row.cost,
        **({"messages": as_json(list(row.messages))} if messages else {}),
    }


def as_json(value: Any) -> Any:
    """A value as it stands in a file: as JSON, or marked as its `repr` where it has no form there."""
    try:
        encoded = encode(value)
        json.dumps(encoded)
        return encoded
    except (AgentsError, ValueError, RecursionError):
        return {_AS_TEXT: _repr(value)}


def is_vague(value: Any) -> bool:
    """Whether something in what `as_json` has made may stand for different values: the `repr` of an object, say."""
    if isinstance(value, Mapping):
        text = value.get(_AS_TEXT)
        # `<Opaque object>`, or a large array, which is cut: `array([0, 1, ..., 9])`.
        lossy = isinstance(text, str) and ("<" in text or "..." in text)
        return lossy or any(map(is_vague, value.values()))
    return isinstance(value, list) and any(map(is_vague, value))


def _repr(value: Any) -> str:
    try:
        return _ADDRESS.sub("", repr(value))
    except Exception as error:
        return f"<a {type(value).__name__}, whose repr raises {type(error).__name__}>"


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
            except (KeyError, TypeError, ValueError, OverflowError, AttributeError, AgentsError) as error:
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
    scores, notes = given["scores"], given["notes"]
    numbers = {f"the score `{name}`": score for name, score in scores.items()} | {"`seconds`": given["seconds"]}
    numbers |= {} if given["cost"] is None else {"`cost`": given["cost"]}
    for name, number in numbers.items():
        if not isinstance(number, bool | int | float) or not abs(number) <= LARGEST:  # NaN is not
            raise ValueError(f"{name} is {number!r}, and no number that it could be")
    for name, note in notes.items():
        if not isinstance(note, str):
            raise TypeError(f"the note `{name}` is {note!r}, and no text")
    return Row(
        case.named(given["case"]),
        value,
        scores,
        notes,
        failures,
        given["trial"],
        given["seconds"],
        Usage(**given["usage"]),
        given["cost"],
        tuple(given.get("messages", ())),
    )
