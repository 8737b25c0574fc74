"""Checking the types in generated code with ty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from effectful_agents.handlers.validation import ty_server
from effectful_agents.handlers.validation.report import (
    Finding,
    PassedChecks,
    inside,
    path_of,
    raise_findings,
    region_of,
)
from effectful_agents.handlers.validation.second_look import certain
from effectful_agents.handlers.validation.ty_server import ERROR, Answer
from effectful_agents.operations.code import type_check
from effectful_agents.operations.legibility import PromptInjectingInterpretation
from effectful_agents.runtime import fwd, implements

__all__ = ["TyTypeChecker"]

_NOTES = 3
_HAS_TYPE = "Has type "


class TyTypeChecker(PromptInjectingInterpretation):
    """The types in Python that you write are checked by ty before it runs. Code with an error is not run.

    You are then shown each error with its line and ty's hints, and you write the code again. That costs nothing but the
    turn, and an error that ty sees would nearly always have come up in the run, so mend the code and do not silence
    ty: behind a `typing.Any` or a `# type: ignore` the same mistake waits for the run. Annotate what you write with the
    types that the code around it declares.

    What was there before your code is not checked.
    """

    # It may stand anywhere in a stack, with any executor. What passes is forwarded, so that another checker outside of
    # it is asked as well.
    #
    # A check takes 2 to 15 ms where ty has seen the modules before, about 100 ms the first time in a process (and
    # again before an error is told, so that no file is out of date), and nothing for what has passed before.
    #
    # Args:
    #     lenient_ignored_rules: Rules that do not count with `lenient=True`. ty allows nearly all of it anyway: a name
    #         may be bound anew to another type, and a function or class defined again.

    def __init__(
        self, lenient_ignored_rules: tuple[str, ...] = ("conflicting-declarations", "missing-union-attribute")
    ) -> None:
        self.lenient_ignored_rules = lenient_ignored_rules
        self._passed = PassedChecks()

    @implements(type_check)
    def type_check(self, source: str, lo: int | None = None, hi: int | None = None, *, lenient: bool = False) -> None:
        key = self._passed.key(source, lo, hi, lenient, sorted(self.lenient_ignored_rules))
        if key not in self._passed:
            self._check(source, *region_of(source, lo, hi), lenient)
            self._passed.add(key)
        return fwd()

    def _check(self, source: str, lo: int, hi: int, lenient: bool) -> None:
        ignored = frozenset(self.lenient_ignored_rules if lenient else ())

        def look(text: str) -> list[Finding]:
            return inside(_findings(ty_server.diagnostics(text, path_of(text)), ignored), text, lo, hi)

        def found(answer: Answer) -> list[Finding]:
            return certain(inside(_findings(answer, ignored), source, lo, hi), source, lo, hi, lenient, look)

        answer = ty_server.diagnostics(source, path_of(source))
        findings = found(answer)
        if findings and not answer.fresh:
            # Files may have changed since the server read them, and what it has seen must not be seen in a message.
            findings = found(ty_server.diagnostics(source, path_of(source), fresh=True))
        raise_findings(findings, source, lo, hi)


def _findings(answer: Answer, ignored: frozenset[str]) -> Iterator[Finding]:
    for one in answer.items:
        rule = str(one.get("code") or "error")
        if one.get("severity") != ERROR or rule in ignored:
            continue
        start, end = one["range"]["start"], one["range"]["end"]
        last = end["character"] if end["line"] == start["line"] else start["character"]
        message = one["message"]
        if "Searched in the following paths" in message:
            message = message.partition("\n")[0]
        first, *more = message.split("\n")
        message = "\n".join([first + _types(one), *more])
        yield Finding(start["line"] + 1, start["character"], last, rule, message, tuple(_notes(one, answer.uri)))


def _types(found: dict[str, Any]) -> str:
    """The types of operands, where ty shows them beside the code and not in the message."""
    told = [one["message"] for one in found.get("relatedInformation") or ()]
    types = [text.removeprefix(_HAS_TYPE) for text in told if text.startswith(_HAS_TYPE)]
    return f": {', '.join(types)}" if types else ""


def _notes(found: dict[str, Any], uri: str) -> Iterator[tuple[int, str]]:
    """What it points to in the same module; the lines of others would have to be shown with their files."""
    seen = {found["range"]["start"]["line"]}
    for one in (found.get("relatedInformation") or ())[:_NOTES]:
        line = one["location"]["range"]["start"]["line"]
        if line not in seen and one["location"]["uri"] == uri:
            seen.add(line)
            yield line + 1, one["message"]
