"""Asking the person at the terminal."""

from __future__ import annotations

import dataclasses
import getpass
import json
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from effectful_agents.encoding.questions import amended_arguments, printable, printable_text, shown_arguments
from effectful_agents.errors import AnswerError
from effectful_agents.operations.policy import Answer, ProposedEffect, Question, request_approval
from effectful_agents.runtime import ObjectInterpretation, implements
from effectful_agents.runtime.capturing import uncaptured

__all__ = ["AskInTerminal"]


class AskInTerminal(ObjectInterpretation[Any, Any]):
    r"""Ask the person at the terminal, and wait for them. They approve, refuse with a reason, or amend the arguments.

    What is shown are the tool, its arguments and its risk; characters that steer a terminal are written as escapes. Who
    says nothing, because the input has ended, refuses. While they think, nothing else goes on in the event loop.

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
    May it go?
      send (tool_call, hard_write)
        to = "Ann"
    Approve (y), refuse (n), or amend the arguments (a)? Why not?
    """

    def __init__(self, input: TextIO | None = None, output: TextIO | None = None) -> None:
        self._input, self._output = input, output
        # One question at a time. It is held while a person thinks, and never while an operation is performed.
        self._asking = threading.Lock()

    @implements(request_approval)
    def request_approval(self, question: Question) -> Answer:
        with self._asking:
            answer = self._informed(question) if question.effect is None else self._decided(question, question.effect)
        return dataclasses.replace(answer, by=answer.by or _who())

    def _informed(self, question: Question) -> Answer:
        # Indented: a model wrote it, and it is not to look like a question of this program's own.
        asked = "".join(f"  {line}\n" for line in _lines(question.text).splitlines())
        self._write(f"The model wants to know:\n{asked}")
        said = self._read("Answer: ")
        return _NOBODY if said is None else Answer(text=said)

    def _decided(self, question: Question, effect: ProposedEffect) -> Answer:
        self._write("\n".join(_shown(question, effect)) + "\n")
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
        except (ValueError, AnswerError) as error:
            self._write(f"That cannot be used: {_lines(str(error))}")
            return None
        self._write(f"With {printable(given)}:\n")
        return {name: whole[name] for name in given}

    def _write(self, text: str) -> None:
        output = uncaptured(sys.stdout) if self._output is None else self._output
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


_NOBODY = Answer(approved=False, reason="nobody answered: the input has ended")


def _shown(question: Question, effect: ProposedEffect) -> Iterator[str]:
    yield _lines(question.text).rstrip("\n")
    yield f"  {printable_text(effect.name or str(effect.kind))} ({effect.kind}, {effect.risk.name.lower()})"
    for name, value in shown_arguments(effect, strict=True).items():
        yield f"    {printable_text(name)} = {printable(value)}"


def _lines(text: str) -> str:
    """Text with its line ends, and no other character that steers a terminal."""
    return "".join(f"{printable_text(line)}\n" for line in text.split("\n"))


def _who() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # in a container, a user may have no name
        return ""
