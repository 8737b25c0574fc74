"""Keeping secrets and personal data from models."""

from __future__ import annotations

import contextlib
import contextvars
import hmac
import re
import secrets
import threading
from collections.abc import Generator, Iterable, Mapping
from typing import Any

from effectful_agents.encoding import decode, dumps, encode
from effectful_agents.errors import EncodingError, OptionError
from effectful_agents.handlers.policy.drafts import mapped
from effectful_agents.handlers.policy.rules.rule import Rule
from effectful_agents.messages import Message
from effectful_agents.messages.secrets import PATTERNS, really
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

    Args:
        kinds: Which of `PATTERNS`; None: all.
        patterns: Regular expressions of your own, by the name that their mark has.
        restore: Whether the data are put back where the model uses a mark that it was shown in this call: in the
            arguments of tools, and in the value that the call returns. The conversation keeps the marks.
        key: A secret of at least 16 bytes, from which marks are made; None for a random one.

    Raises:
        OptionError: There is no such kind, an expression is none, or the key is too short.

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
        if isinstance(kinds, str):
            raise OptionError(f"`kinds` is the text {kinds!r}; it is a list of names, of {', '.join(PATTERNS)}.")
        chosen = tuple(PATTERNS) if kinds is None else tuple(kinds)
        for kind in chosen:
            if kind not in PATTERNS:
                raise OptionError(f"`{kind}` is not recognized; there are {', '.join(PATTERNS)}, and your `patterns`.")
        if key is not None and not (isinstance(key, bytes) and len(key) >= 16):
            raise OptionError("`key` of `Redaction` is a secret of at least 16 bytes.")
        self._patterns: list[tuple[str, re.Pattern[str]]] = []
        for kind, pattern in {**{kind: PATTERNS[kind] for kind in chosen}, **(patterns or {})}.items():
            try:
                self._patterns.append((kind, re.compile(pattern)))
            except re.error as error:
                raise OptionError(f"the pattern `{kind}` of `Redaction` is no regular expression: {error}") from error
        self.restore = restore
        self._key = key
        self._keys: dict[str, bytes] = {}
        self._marking = threading.RLock()
        self.begin()

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
        for kind, pattern in self._patterns:
            text = pattern.sub(lambda found, kind=kind: self._mark(kind, found[0]), text)
        return text

    def _mark(self, kind: str, datum: str) -> str:
        whole, datum = datum, really(kind, datum)
        if datum != whole:
            return f"{self._mark(kind, datum)}{whole[len(datum) :]}" if datum else whole
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
        key = self._keys.get(ids.run_id)
        if key is None:
            with StepIds(prefix="redaction/", run_id=ids.run_id):
                key = self._keys[ids.run_id] = record(_new_key, str).encode()
        return key

    def tool_call(self, effect: ProposedEffect, /) -> Decision | None:
        if not self.restore:
            return None
        signature = None if effect.tool is None else effect.tool.__signature__
        types = {} if signature is None else {name: one.annotation for name, one in signature.parameters.items()}
        arguments = effect.arguments.items()
        return Decision(arguments={name: self._restored_in(value, types.get(name, Any)) for name, value in arguments})

    def _restored_in(self, value: Any, tp: Any) -> Any:
        """A value with the data in the place of the marks in its texts; the same one where there are none."""
        if isinstance(value, str):
            return self.restored(value) if type(value) is str else value
        try:
            encoded = encode(value, tp)
            amended = mapped(encoded, self.restored, names=True)
            return value if amended == encoded else decode(dumps(amended), tp, strict=True)
        except EncodingError:  # what has no texts that could be read
            return value


_MARK = re.compile(r"\[[^\[\]\n]{1,60} [0-9a-f]{8,64}\]")

_OF_THIS_PROCESS = secrets.token_bytes(32)

_shown: contextvars.ContextVar[set[str] | None] = contextvars.ContextVar("effectful_agents_shown_marks", default=None)
"""The marks that the model was shown in the running call of the program's; None outside of calls."""


def _new_key() -> str:
    return secrets.token_hex(32)
