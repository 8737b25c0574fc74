"""The command `prompt`: what a skill of a script sends to a model, and how many tokens that is."""

from __future__ import annotations

import json
import os
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

from effectful_agents.encoding import render_section
from effectful_agents.errors import ConfigurationError, MissingHandlerError
from effectful_agents.harness.call import Asked, ask_nobody, bind, find, without_main
from effectful_agents.harness.launcher import become_main, fail, one_line, read_script, show_traceback, stack_of
from effectful_agents.harness.options import parse_question
from effectful_agents.operations.counting import count_tokens
from effectful_agents.operations.prompt import PromptSection, section
from effectful_agents.runtime import handler

__all__ = ["main"]


def main(arguments: Sequence[str], *, program: str = "effectful-agents prompt") -> int:
    """Show the first request of a call, without asking a model; the process is the script's afterwards.

    Args:
        arguments: Those of the command line, without the program's name and the command.
        program: How the program is called, for its help.

    Returns:
        The exit code: 1 where the script fails while it is loaded, 2 where something has to be written otherwise.
    """
    question = parse_question(arguments, program)
    try:
        source = read_script(question.script)
        stack = stack_of(question.options)
        module = become_main(question.script, [])
        try:
            exec(without_main(source, str(module.__file__)), module.__dict__)
        except BaseException as error:
            return _not_loaded(error, module)
        skill = find(module, question.skill)
        asked = ask_nobody(stack, skill, bind(skill, question.arguments))
    except ConfigurationError as error:
        return fail(one_line(error), code=2)
    if question.as_json:
        print(json.dumps(asked.request, ensure_ascii=False, indent=2))
    else:
        with handler(stack):
            _Report(stack.settings.model).show(asked)
    return 0


def _not_loaded(error: BaseException, module: types.ModuleType) -> int:
    """Say what a script raised while it was loaded."""
    mend = 'put what it does under `if __name__ == "__main__":`.'
    if isinstance(error, MissingHandlerError):
        return fail(f"the script asks a model while it is loaded: {mend}", code=2)
    if isinstance(error, SystemExit):
        return fail(f"the script ends while it is loaded: {mend}", code=2)
    if isinstance(error, KeyboardInterrupt):
        return fail("interrupted.", code=130)
    return show_traceback(error, str(module.__file__))


class _Report:
    """A request, written for a person.

    Args:
        model: The model whose tokens are counted.
    """

    def __init__(self, model: str | None) -> None:
        self._model = model
        self._coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self._total = 0
        self._estimated = False

    def show(self, asked: Asked) -> None:
        """Print the parts of the request, and their tokens."""
        before = 0
        for place, message in enumerate(asked.request["messages"], 1):
            # With what stands before it: some chats begin with something of their own.
            tokens = self._tokens(asked.request["messages"][:place])
            self._title(f"{message['role']} message", tokens - before)
            before = tokens
            if message["role"] == "system" and asked.document is not None:
                self._table(asked.document)
            print(_text(message.get("content")))
        self._total = before
        for tool in asked.request.get("tools", ()):
            self._json(f"tool {tool['function']['name']}", tool)
        form: Any = asked.request.get("response_format")
        if form is not None:
            self._json("response format", form)
        total = f"{self._total:,} tokens"
        print(self._bold(f"{total}, estimated" if self._estimated else total))

    def _table(self, document: PromptSection) -> None:
        """Print what the system message consists of: its halves, and the sections in them."""
        for half in _sections(document):
            self._row(0, half)
            for part in _sections(half):
                self._row(1, part)
        print()

    def _row(self, depth: int, part: PromptSection) -> None:
        tokens = self._tokens(_text(render_section(section("", part))))
        print(f"{tokens:>8,}  {'  ' * depth}{part['title'] or '(the task)'}")

    def _json(self, name: str, value: Any) -> None:
        tokens = self._tokens(json.dumps(value, ensure_ascii=False))
        self._total += tokens
        self._title(name, tokens)
        print(json.dumps(value, ensure_ascii=False, indent=2))

    def _title(self, name: str, tokens: int) -> None:
        print(self._bold(f"--- {name}: {tokens:,} tokens"))

    def _tokens(self, content: Any) -> int:
        counted = count_tokens(content, self._model)
        self._estimated = self._estimated or counted.estimated
        return counted.tokens

    def _bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self._coloured else text


def _sections(prompt: PromptSection) -> Iterator[PromptSection]:
    """The sections right in a prompt that are written: those that have something in them."""
    for part in prompt["content"]:
        if part["type"] == "prompt_section" and render_section(section("", part)):
            yield part


def _text(content: Any) -> str:
    """The text of a message; what is no text is named."""
    if not isinstance(content, list):
        return content or ""
    return "\n".join(part["text"] if part["type"] == "text" else f"[{part['type']}]" for part in content)
