"""Keeping secrets and personal data from models."""

from __future__ import annotations

import bisect
import contextlib
import contextvars
import hmac
import re
import secrets
import threading
import weakref
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from effectful_agents.errors import OptionError
from effectful_agents.handlers.policy.rewriting import rewritten
from effectful_agents.handlers.policy.rules.options import names_given
from effectful_agents.handlers.policy.rules.rule import Rule
from effectful_agents.messages import Message
from effectful_agents.messages.sensitive import PATTERNS, found_in
from effectful_agents.messages.text import text_for_reading
from effectful_agents.operations.journal import record
from effectful_agents.operations.policy import Decision, ProposedEffect
from effectful_agents.operations.steps import StepIds, current_ids

__all__ = ["PATTERNS", "Redaction"]


class Redaction(Rule):
    """Put marks such as `[EMAIL b7ffcc56]` in the place of secrets and personal data, to the model and back.

    That is in what the program says, in prompts that are made from it, in results of tools, and in what the model
    writes. The same datum has the same mark, so that the model can tell them apart; nobody can compute the one from the
    other. In a run with a `Journal` marks are the same when it is resumed. Otherwise they are others in each process;
    with a `key` they are the same everywhere. What a mark stands for is known from where the datum is first read to the
    end of the block: a mark that an agent or a memory keeps from an earlier block stays a mark.

    Data are never put back into code: a datum with a quote in it would be a part of the program, and whoever wrote the
    datum its author. What `exec_code` and its like get, and functions that a call returns, have the marks; a tool that
    such code calls with a mark gets the datum. So does a tool of yours: one that runs a text as a program, SQL say, is
    to take the data as parameters beside it. Values that do not come back whole from their JSON stay as they are.

    Args:
        kinds: Which of `PATTERNS`; None: all.
        patterns: Regular expressions of your own, by the name that their mark has: up to 60 characters in one line,
            without brackets, quotes and backslashes. Where what two find overlaps, it is one datum, of the kind of the
            longer one.
        restore: Whether the data are put back where the model uses a mark that it was shown in this call: in the
            arguments of tools, and in the value that the call returns. The conversation keeps the marks.
        key: A secret of at least 16 bytes, from which marks are made; None for a random one.

    Raises:
        OptionError: There is no such kind, an expression is none, a name cannot stand in a mark or is one of `kinds`,
            there is nothing to look for, or the key is too short.

    >>> redaction = Redaction(key=b"an example, 16 bytes or more")
    >>> redaction.ingress("Write to ann@example.org and bob@example.org, not to ann@example.org.")
    'Write to [EMAIL b7ffcc56] and [EMAIL af3a0502], not to [EMAIL b7ffcc56].'
    """

    def __init__(
        self,
        kinds: Iterable[str] | None = None,
        *,
        patterns: Mapping[str, str] | None = None,
        restore: bool = False,
        key: bytes | None = None,
    ) -> None:
        super().__init__("redaction")
        chosen = tuple(PATTERNS) if kinds is None else names_given(kinds, "kinds", f"of {', '.join(PATTERNS)}")
        for kind in chosen:
            if kind not in PATTERNS:
                raise OptionError(f"`{kind}` is not recognized; there are {', '.join(PATTERNS)}, and your `patterns`.")
        if key is not None and not (isinstance(key, bytes) and len(key) >= 16):
            raise OptionError("`key` of `Redaction` is a secret of at least 16 bytes.")
        own = _own_patterns({} if patterns is None else patterns, chosen)
        self._patterns = [*((kind, re.compile(PATTERNS[kind])) for kind in chosen), *own]
        if not self._patterns:
            raise OptionError("this `Redaction` looks for nothing; give it `kinds` or `patterns`.")
        self.restore = restore
        self._key = key
        # By the run itself and not by its name, which another one may have, in another journal.
        self._keys: weakref.WeakKeyDictionary[StepIds, bytes] = weakref.WeakKeyDictionary()
        self._marking = threading.RLock()
        self.begin()

    def settings(self) -> Mapping[str, Any]:
        # Not the key, nor anything that is made of it.
        patterns = [[kind, pattern.pattern] for kind, pattern in self._patterns]
        own = {"patterns": patterns, "restore": self.restore, "has_key": self._key is not None}
        return {**super().settings(), **own}

    def begin(self) -> None:
        with self._marking:
            self._originals: dict[str, str] = {}

    @contextlib.contextmanager
    def call(self) -> Generator[None]:
        token = _shown.set({*()})
        try:
            yield
        finally:
            _shown.reset(token)

    def shown(self, messages: Iterable[Message], /) -> None:
        shown = _shown.get()
        if self.restore and shown is not None:
            for message in messages:
                shown.update(_MARK.findall(text_for_reading(message.get("content"))))

    def ingress(self, text: str, /) -> str:
        return self._redacted(text, from_outside=True)

    def tool_result(self, text: str, /) -> str:
        return self._redacted(text, from_outside=True)

    def egress(self, text: str, /) -> str:
        return self._redacted(text)

    def leaving(self, text: str, /) -> str:
        return self.restored(text) if self.restore else self._redacted(text)

    def restored(self, text: str) -> str:
        """A text with the data in the place of the marks that the model was shown in this call."""
        shown = _shown.get()
        return _MARK.sub(
            lambda mark: self._originals.get(mark[0], mark[0]) if shown is None or mark[0] in shown else mark[0], text
        )

    def _redacted(self, text: str, *, from_outside: bool = False) -> str:
        if self.restore and from_outside:
            # Whoever writes a mark himself is not to get what it stands for.
            text = _MARK.sub(lambda mark: self._mark("MARK", mark[0]) if mark[0] in self._originals else mark[0], text)
        spans = _merged(
            (start, end, kind) for kind, pattern in self._patterns for start, end in found_in(text, kind, pattern)
        )
        if not spans:
            return text
        marks = [found.span() for found in _MARK.finditer(text) if found[0] in self._originals]
        made, done = [], 0
        for start, end, kind in spans:
            for begin, stop in _outside(start, end, marks):
                made += [text[done:begin], self._mark(kind, text[begin:stop])]
                done = stop
        return "".join([*made, text[done:]])

    def _mark(self, kind: str, datum: str) -> str:
        code = hmac.new(self._key_here(), f"{kind}\0{datum}".encode("utf-8", "surrogatepass"), "sha256").hexdigest()
        with self._marking:
            for length in range(8, len(code) + 1, 8):
                mark = f"[{kind} {code[:length]}]"
                if self._originals.setdefault(mark, datum) == datum:
                    return mark
        raise AssertionError("two data have the same code")

    def _key_here(self) -> bytes:
        """The key; that of a run is written down, so that its marks are the same when it is resumed."""
        ids = current_ids()
        if self._key is not None or ids is None or not ids.run_id:
            return self._key or _OF_THIS_PROCESS
        key = self._keys.get(ids.root)
        if key is None:
            with StepIds(prefix="redaction/", run_id=ids.run_id, root=ids.root):
                key = self._keys[ids.root] = record(_new_key, str).encode()
        return key

    def tool_call(self, effect: ProposedEffect, /) -> Decision | None:
        if not self.restore or (effect.tool is not None and effect.tool.runs_code):
            return None
        return Decision(arguments={name: rewritten(one, self.restored) for name, one in effect.arguments.items()})


_MARK = re.compile(r"\[[^\[\]\n]{1,60} [0-9a-f]{8,64}\]")
_KIND = re.compile(r"[^\[\]\"'\\`]{1,60}")  # where it stands in JSON or in code, it ends no text there


def _own_patterns(patterns: Any, ready: Iterable[str]) -> list[tuple[str, re.Pattern[str]]]:
    if not isinstance(patterns, Mapping):
        raise OptionError(f"`patterns` is {type(patterns).__name__}; it is a dict of regular expressions by name.")
    made = []
    for kind, pattern in patterns.items():
        if not isinstance(kind, str) or not _KIND.fullmatch(kind) or not kind.isprintable() or kind != kind.strip():
            raise OptionError(
                f"{kind!r} is no name of a pattern of `Redaction`: it has 1 to 60 characters in one line, without "
                "brackets, quotes and backslashes."
            )
        if kind in ready:
            raise OptionError(f"`{kind}` is ready and a pattern of yours; leave it out of `kinds`, or rename yours.")
        try:
            made.append((kind, re.compile(pattern)))
        except (re.error, TypeError) as error:
            raise OptionError(f"the pattern `{kind}` of `Redaction` is no regular expression: {error}") from error
    return made


def _merged(spans: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Spans in their order, with those that overlap as one, of the kind of the longest, or of the first of them.

    >>> _merged([(4, 9, "EMAIL"), (0, 12, "NAME"), (12, 14, "CARD")])
    [(0, 12, 'NAME'), (12, 14, 'CARD')]
    """
    made: list[tuple[int, int, str]] = []
    longest = 0
    for start, end, kind in sorted(spans, key=lambda span: span[:2]):
        if not made or start >= made[-1][1]:
            made.append((start, end, kind))
            longest = end - start
            continue
        first, last, known = made[-1]
        made[-1] = first, max(last, end), kind if end - start > longest else known
        longest = max(longest, end - start)
    return made


def _outside(start: int, end: int, marks: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """What of a span is outside of these, which are in their order: marks stay as they are.

    >>> list(_outside(0, 9, [(2, 4), (6, 12)]))
    [(0, 2), (4, 6)]
    """
    for index in range(bisect.bisect(marks, start, key=lambda mark: mark[1]), len(marks)):
        begin, stop = marks[index]
        if begin >= end:
            break
        if start < begin:
            yield start, begin
        start = stop
    if start < end:
        yield start, end


_OF_THIS_PROCESS = secrets.token_bytes(32)

_shown: contextvars.ContextVar[set[str] | None] = contextvars.ContextVar("effectful_agents_shown_marks", default=None)
"""The marks that the model was shown in the running call of the program's; None outside of calls."""


def _new_key() -> str:
    return secrets.token_hex(32)
