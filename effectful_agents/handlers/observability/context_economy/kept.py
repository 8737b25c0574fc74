"""How far a prompt begins as one before it did, whichever that was: what a provider may still have of it."""

from __future__ import annotations

import json
from typing import Any

from effectful_agents.handlers.observability.context_economy.prompts import Definition, Prompt, Said

__all__ = ["SentPrompts"]


class SentPrompts:
    """The prompts that models were sent so far, by what they begin with.

    Providers keep the beginnings of many prompts at once, for each model. So skills whose calls alternate need not
    begin anew each time: the prompt of one is often the beginning of its next one, with others in between.

    Each prompt is looked up and kept in time in proportion to what it has more than those of the same model, tools and
    form of the answer.
    """

    def __init__(self) -> None:
        self._models: dict[str, _AfterTools] = {}

    def take(self, prompt: Prompt, model: str) -> int:
        """Keep a prompt.

        Args:
            prompt: The prompt.
            model: The model that it was sent to.

        Returns:
            How many tokens at its beginning are those of one that the model was sent before.
        """
        here = self._models.setdefault(model, _AfterTools())
        agreed, is_known = 0, True
        for tool in prompt.tools:
            is_known = is_known and tool.text in here.next
            agreed += tool.counted.tokens if is_known else 0
            here = here.next.setdefault(tool.text, _AfterTools())
        form = "" if prompt.form is None else prompt.form.text
        conversations = here.forms.get(form)
        if conversations is None:
            here.forms[form] = _Conversations(prompt.end)
            return agreed
        return agreed + _tokens(prompt.form) + conversations.take(prompt.end)


class _AfterTools:
    """What comes after the same tools: a further one, or the form of the answer; empty text stands for no form."""

    def __init__(self) -> None:
        self.next: dict[str, _AfterTools] = {}
        self.forms: dict[str, _Conversations] = {}


class _Conversations:
    """The messages that were sent after the same tools and form of the answer.

    The first conversation is gone through only when there is a second one to compare: where the tools change with each
    turn, all those conversations would take time in proportion to the square of their length.
    """

    def __init__(self, first: Said) -> None:
        self._waiting: Said | None = first
        self._said: set[Said] = set()
        self._sections: dict[str, Any] = {}

    def take(self, end: Said) -> int:
        if self._waiting is not None:
            self._add(self._waiting)
            self._waiting = None
        return self._add(end)

    def _add(self, end: Said) -> int:
        """Keep the messages up to one: how many tokens at their beginning were there."""
        here, first = end, None
        while here.before is not None and here not in self._said:
            self._said.add(here)
            here, first = here.before, here
        # Of a system message that is another one, the first sections may be the same.
        return here.tokens + (self._add_sections(first) if first is not None and here.before is None else 0)

    def _add_sections(self, first: Said) -> int:
        agreed, is_known, here = 0, True, self._sections
        for title, part, tokens in first.system:
            key = json.dumps([title, part, tokens], sort_keys=True, default=str)
            is_known = is_known and key in here
            agreed += tokens if is_known else 0
            here = here.setdefault(key, {})
        return agreed


def _tokens(form: Definition | None) -> int:
    return 0 if form is None else form.counted.tokens
