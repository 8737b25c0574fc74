"""Asking the person at the terminal."""

from __future__ import annotations

import dataclasses
import getpass
import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from effectful_agents.encoding.questions import (
    amended_arguments,
    apart,
    printable,
    printable_text,
    shown_arguments,
    told_argument,
)
from effectful_agents.errors import AnswerError
from effectful_agents.handlers.policy.external import called, result_of
from effectful_agents.operations.policy import Answer, ProposedEffect, Question, request_approval
from effectful_agents.runtime import ObjectInterpretation, implements
from effectful_agents.runtime.capturing import uncaptured
from effectful_agents.types import Tool

__all__ = ["AskInTerminal"]


class AskInTerminal(ObjectInterpretation[Any, Any]):
    r"""Ask the person at the terminal, and wait for them. They approve, refuse with a reason, or amend the arguments.

    Of a tool that is `external` they give the result, as JSON.

    What is shown are the tool, its arguments and its risk. Characters that steer a terminal, or that nobody sees, are
    written as escapes; lines of what a policy, a model or a tool wrote begin with a bar. Where nobody answers, because
    the input has ended, the effect does not happen. While they think, nothing else goes on in the event loop.

    Args:
        input: Where the answers are read, line by line; the standard input by default.
        output: Where the questions are written; the standard output by default, also where the output of code that a
            model wrote is captured.

    >>> import io
    >>> from effectful_agents import Risk, handler
    >>> effect = ProposedEffect(kind="tool_call", name="send", arguments={"to": "Ann"}, risk=Risk.HARD_WRITE)
    >>> shown = io.StringIO()
    >>> with handler(AskInTerminal(io.StringIO("n\ntoo late\n"), shown)):
    ...     answer = request_approval(Question(text="May it go?", effect=effect))
    >>> answer.approved, answer.reason
    (False, 'too late')
    >>> print(shown.getvalue().rstrip())
      | May it go?
      send (tool_call, hard_write)
        to = "Ann"
    Approve (y), refuse (n), or amend the arguments (a)? Why not?
    """

    def __init__(self, input: TextIO | None = None, output: TextIO | None = None) -> None:
        self._input, self._output = input, output
        # One question at a time. It is held while a person thinks, and never while an operation is performed.
        self._asking = threading.Lock()

    @implements(Tool.__apply__)
    def call_external(self, tool: Tool, /, *args: Any, **kwargs: Any) -> Any:
        return called(tool, args, kwargs)

    @implements(request_approval)
    def request_approval(self, question: Question) -> Answer:
        with self._asking:
            answer = self._informed(question) if question.effect is None else self._decided(question, question.effect)
        return answer if answer.from_nobody else dataclasses.replace(answer, by=_who())

    def _informed(self, question: Question) -> Answer:
        self._write(f"The model wants to know:\n{apart(question.text, self._width)}\n")
        said = self._read("Answer: ")
        return _NOBODY if said is None else Answer(text=said)

    def _decided(self, question: Question, effect: ProposedEffect) -> Answer:
        self._write("\n".join(_shown(question, effect, self._width)) + "\n")
        if question.returns is not None and effect.tool is not None:
            return self._fetched(effect.tool)
        while True:
            said = self._read("Approve (y), refuse (n), or amend the arguments (a)? ")
            if said is None:
                return _NOBODY
            match said.strip().lower():
                case "y" | "yes":
                    return Answer()
                case "n" | "no":
                    return Answer(approved=False, reason=self._read("Why not? ") or "")
                case "a" | "amend":
                    if (amended := self._amended(effect)) is not None:
                        return Answer(arguments=amended)
                case _:
                    self._write("Please answer y, n or a.\n")

    def _fetched(self, tool: Tool[..., Any]) -> Answer:
        """The result of an external tool, which the person knows or finds out."""
        while True:
            said = self._read("Its result, as JSON (nothing to refuse): ")
            if said is None:
                return _NOBODY
            if not said.strip():
                return Answer(approved=False, reason=self._read("Why not? ") or "")
            try:
                result_of(tool, said)
            except AnswerError as error:
                self._write(f"That cannot be used:\n{apart(str(error), self._width)}\n")
            else:
                return Answer(text=said)

    def _amended(self, effect: ProposedEffect) -> Mapping[str, Any] | None:
        """The arguments that they change; None if nothing came of it."""
        said = self._read('What changes, as JSON, such as {"to": "ann"}: ')
        if not said:
            return None
        try:
            given = json.loads(said)
            if not isinstance(given, dict):
                raise AnswerError('a JSON object has the names of the arguments: {"name": value}')
            whole = amended_arguments(effect, given)
        except (ValueError, RecursionError, AnswerError) as error:
            self._write(f"That cannot be used:\n{apart(str(error), self._width)}\n")
            return None
        self._write(apart(printable(given), self._width, first="With ") + ":\n")
        return {name: whole[name] for name in given}

    @property
    def _to(self) -> TextIO:
        return uncaptured(sys.stdout) if self._output is None else self._output

    @property
    def _width(self) -> int:
        try:
            return os.get_terminal_size(self._to.fileno()).columns or _WIDTH
        except (OSError, ValueError, AttributeError):  # it is none
            return _WIDTH

    def _write(self, text: str) -> None:
        output = self._to
        output.write(text)
        output.flush()

    def _read(self, prompt: str) -> str | None:
        """A line, without its end; None where there is no more."""
        self._write(prompt)
        line = (sys.stdin if self._input is None else self._input).readline()
        if not line:
            self._write("\n")
            return None
        return line.rstrip("\r\n")

    def manifest(self) -> Mapping[str, object]:
        return {"stages": ["approval.in_place"]}


_NOBODY = Answer(approved=False, reason="the input has ended", from_nobody=True)
_WIDTH = 80


def _shown(question: Question, effect: ProposedEffect, width: int) -> Iterator[str]:
    yield apart(question.text.rstrip("\n"), width)
    name = f"{printable_text(effect.name or str(effect.kind))} ({effect.kind}, {effect.risk.name.lower()})"
    yield apart(name, width, first="  ")
    for name, value in shown_arguments(effect, strict=True).items():
        yield apart(told_argument(name, value), width, first="    ")


def _who() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # in a container, a user may have no name
        return ""
