"""Runs as text: a table of them, and the steps of one."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from effectful_agents.handlers.durability import unsettled
from effectful_agents.messages import Usage
from effectful_agents.operations.prices import cost_of
from effectful_agents.operations.records import Record, RunInfo, RunState, RunStatus

__all__ = ["list_of_runs", "steps_of_run"]


def list_of_runs(runs: Sequence[RunInfo], database: str, now: float) -> str:
    """A table of runs.

    Args:
        runs: The runs.
        database: Where they are kept.
        now: The time, in seconds since 1970-01-01 UTC.

    >>> print(list_of_runs([RunInfo(run_id="r", status=RunStatus.FINISHED, skill="report", steps=3)], "runs.db", 90))
    ID  STATE     SKILL   STEPS  TOKENS  COST  LAST STEP  AGE
    r   finished  report      3       -     -  -          1 min
    """
    if not runs:
        return f"There are no runs in {database}."
    rows = [["ID", "STATE", "SKILL", "STEPS", "TOKENS", "COST", "LAST STEP", "AGE"]]
    for run in runs:
        values = [run.run_id, run.status.value, run.skill or "-", f"{run.steps:,}", _tokens(run), _cost(run)]
        rows.append([*map(_printable, values), run.last_step or "-", _age(now - run.updated)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    numbers = {3, 4, 5}
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place in numbers else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def steps_of_run(info: RunInfo, state: RunState, database: str) -> str:
    """The steps of a run, nested ones indented, with what was asked and what came of it.

    Args:
        info: What the list of runs has of it.
        state: Its journal.
        database: Where it is kept, for the commands that are shown.
    """
    return "\n".join([*_head(info, state), "", *_steps(info, state, database)])


# --- the run ----------------------------------------------------------------------------------------------------------


def _head(info: RunInfo, state: RunState) -> Iterator[str]:
    facts = [
        info.run_id,
        info.status.value,
        info.skill,
        f"{info.steps:,} step{'' if info.steps == 1 else 's'}",
        f"{_tokens(info)} tokens",
        _cost(info),
    ]
    yield "  ".join(_printable(fact) for fact in facts if fact not in ("", "-", "- tokens"))
    if info.holder:
        yield f"in use by {_printable(info.holder)}"
    origin = state.records[0].body
    if "forked_from" in origin:
        at = f" at {origin['at']}" if origin.get("at") else ""
        yield f"forked from {_printable(str(origin['forked_from']))}{at}"
    if info.error:
        lead = "" if info.status is RunStatus.SUSPENDED else "ended with "
        yield from textwrap.wrap(lead + _printable(info.error), 110, subsequent_indent="  ")


def _tokens(run: RunInfo) -> str:
    counts = [run.usage.get("input"), run.usage.get("output")]
    return "-" if counts == [None, None] else f"{sum(count or 0 for count in counts):,}"


def _cost(run: RunInfo) -> str:
    costs = [cost_of(model, Usage(**usage)) for model, usage in run.models.items()]
    known = [cost for cost in costs if cost is not None]
    # A sum that leaves something out would be taken for the whole.
    return f"${sum(known):.4f}" if costs and len(known) == len(costs) else "-"


def _age(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


# --- its steps --------------------------------------------------------------------------------------------------------


def _steps(info: RunInfo, state: RunState, database: str) -> Iterator[str]:
    to_settle = set(unsettled(state)) if info.status is not RunStatus.RUNNING else set[str]()
    for step_id in state.steps():
        asked, came = state.attempted(step_id), state.completed(step_id)
        record = came or asked
        assert record is not None
        indent = "  " * step_id.count("/")
        attempt = f"attempt {record.attempt}" if record.attempt > 1 else ""
        became = "UNCERTAIN" if step_id in to_settle else _became(record, came, info.status)
        digest = (asked.digest if asked else "")[:8]
        facts = [step_id, record.name, attempt, became, digest]
        yield indent + "  ".join(_printable(fact) for fact in facts if fact)
        for what, text in (("asked", _asked(asked)), ("came", _came(came))):
            if text:
                yield f"{indent}    {what + ':':<6} {_short(text)}"
        if step_id in to_settle:
            command = ["effectful-agents", "runs", "settle", info.run_id, step_id, "--database", database]
            yield f"{indent}    settle it: {shlex.join(command)} with --done VALUE, --redo or --fail [TEXT]"


def _became(record: Record, came: Record | None, status: RunStatus) -> str:
    if came is None and record.kind == "approval" and status is RunStatus.SUSPENDED:
        return "WAITS FOR AN ANSWER"
    if came is None:
        return "goes on" if status is RunStatus.RUNNING else "not ended"
    if "settled" in came.body:
        return f"settled by {came.body.get('by', 'somebody')}"
    return next((word for key, word in _ENDS.items() if key in came.body), "done")


_ENDS = {"error": "failed", "told": "failed", "denied": "denied"}


def _asked(record: Record | None) -> str:
    if record is None:
        return ""
    if messages := record.body.get("messages"):
        return f"{messages[-1].get('role', '')} {_text(messages[-1])}"
    arguments = record.body.get("arguments")
    if not isinstance(arguments, Mapping):
        return ""
    return f"{record.name}({', '.join(f'{name}={_json(value)}' for name, value in arguments.items())})"


def _came(record: Record | None) -> str:
    if record is None:
        return ""
    body = record.body
    match body:
        case {"settled": "done", "value": value}:
            return f"done, {_json(value)}"
        case {"settled": str(answer)}:
            return ": ".join(filter(None, [answer, str(body.get("error") or "")]))
        case {"error": {"text": str(text)}} | {"told": {"text": str(text)}} | {"denied": str(text)}:
            return text
        case {"response": {"choices": [{"message": dict(message)}, *_]}}:
            return _text(message)
        case {"value": {"approved": bool(approved), "reason": str(reason), "text": str(text)}} if (
            record.kind == "approval"
        ):
            return ": ".join(filter(None, ["approved" if approved else "refused", text or reason]))
        case {"value": value}:
            return _json(value)
        case {"message": dict(message)}:
            return _text(message)
    return ""


def _text(message: Mapping[str, Any]) -> str:
    """What a message says: its text, and the tools that it calls."""
    content = message.get("content")
    if isinstance(content, list):
        content = " ".join(part.get("text") or f"[{part.get('type')}]" for part in content)
    calls = [call.get("function", {}) for call in message.get("tool_calls") or ()]
    return " ".join(filter(None, [content, *(f"{call.get('name')}({call.get('arguments')})" for call in calls)]))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _short(text: str, width: int = 100) -> str:
    text = " ".join(_printable(text).split())
    return text if len(text) <= width else text[: width - 1] + "…"


def _printable(text: str) -> str:
    """Text without what steers a terminal."""
    return "".join(one if one.isprintable() else " " if one.isspace() else "\N{REPLACEMENT CHARACTER}" for one in text)
