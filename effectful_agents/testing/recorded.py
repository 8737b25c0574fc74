"""Requests and replies as a cassette keeps them: plain JSON, without keys, and the same everywhere."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import PydanticUserError, TypeAdapter

from effectful_agents.encoding import to_jsonable
from effectful_agents.errors import EncodingError
from effectful_agents.messages import ToolChoice
from effectful_agents.messages.exchange import settings_of_a_service
from effectful_agents.messages.sensitive import PATTERNS, is_secret_name, without_secrets

__all__ = ["Forms", "RecordedRequest", "digest_of"]

_UNDERSTOOD_BY_ONE = frozenset({"provider_options", "extra_body"})
_ON_ITS_WAY = frozenset(
    {
        *("timeout", "num_retries", "max_retries", "stream", "stream_options", "service_tier"),
        *("metadata", "user", "safety_identifier", "store", "caching", "prompt_cache_key"),
    }
)
"""How a request travels and who pays for it, and not what it asks."""

_DESCRIBING = frozenset({"messages", "tools", "functions", "response_format"})
"""In these a property may be called a password, and is none."""

_SECRETS = tuple((kind, re.compile(PATTERNS[kind])) for kind in ("KEY", "TOKEN"))
_KEY_OF_A_SERVICE = re.compile(r"(?:_|^)(?:API|SECRET|ACCESS)_KEY$")
_SHORTEST_SECRET, _CERTAIN_SECRET = 12, 20
"""Characters. What is shorter than the first keeps no secret, and what is as long as the second is no word; between
them are both, and only those with digits are keys."""

_RANDOM = re.compile(r"(?=(?:[^0-9]*[0-9]){4})(?=(?:[^A-Za-z]*[A-Za-z]){4})[A-Za-z0-9_+/=.-]{24,}")

_ONE_WORD = re.compile(r"[^\s()\[\]{}<>\"'`]+")
_DATA_URL = re.compile(r"data:[\w.+/-]{0,100}(?:;[\w.=+-]{1,100}){0,5};base64,")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_LONG = 1000
_MOST_KNOWN = 4096


@dataclasses.dataclass(frozen=True)
class RecordedRequest:
    """A request as a cassette keeps it.

    Attributes:
        digest: Equal for requests that ask the same.
        messages: The conversation.
        marks: The digest of each message.
        settings: What else the request says, and may change the reply.
    """

    digest: str
    messages: tuple[Any, ...]
    marks: tuple[str, ...]
    settings: Mapping[str, Any]

    @functools.cached_property
    def beginnings(self) -> tuple[bytes, ...]:
        """What stands for the first message, the first two, and so on."""
        hashed, beginnings = hashlib.blake2b(digest_size=10), []
        for mark in self.marks:
            hashed.update(mark.encode())
            beginnings.append(hashed.digest())
        return tuple(beginnings)

    def to_json(self) -> dict[str, Any]:
        """The request as one piece of JSON."""
        return {**self.settings, "messages": list(self.messages)}


class Forms:
    """Writes requests and replies in the form of a cassette.

    Keys are left out, texts that look like one have a mark in their place, and large binary data are named by their
    digest. So the digest of a request is the same with another key, in another process and on another day.

    Args:
        scrub: What texts are replaced by before they are compared and written; None leaves them.
        ignore: Names of settings that make no difference.
    """

    def __init__(self, scrub: Callable[[str], str] | None = None, ignore: frozenset[str] = frozenset()) -> None:
        self._scrub = scrub
        self._ignore = ignore | _ON_ITS_WAY
        self._secrets: frozenset[str] = frozenset()
        # By identity, with what they were: messages and definitions of tools are large, hardly ever changed, and the
        # same from turn to turn.
        self._known: dict[int, tuple[Any, Any, Any, str]] = {}

    def request(self, request: Mapping[str, Any]) -> RecordedRequest:
        """A request as it is compared and written."""
        self._note(_secrets_in({name: value for name, value in request.items() if name not in _DESCRIBING}))
        self._note(_secrets_in({"tools": request.get("tools")}, describes=True))
        left_out = settings_of_a_service(request).keys() - _UNDERSTOOD_BY_ONE
        settings, digests = {}, {}
        for name, value in request.items():
            if name == "messages" or value is None or name in left_out or name in self._ignore:
                continue
            # What is no data is a client, or a function of somebody's: it says how the request is made.
            with contextlib.suppress(EncodingError):
                settings[name], digests[name] = self._setting(name, value)
        written = [self._noted(message) for message in request.get("messages", ())]
        marks = tuple(mark for _, mark in written)
        digest = digest_of([marks, digests])
        return RecordedRequest(digest, tuple(message for message, _ in written), marks, settings)

    def reply(self, reply: Any) -> Any:
        """A reply, or a part of one, as it is written."""
        self._note(())
        return self._written(to_jsonable(reply), is_reply=True)

    def _note(self, secrets: Iterable[str]) -> None:
        secrets = _secrets_of_environment().union(secrets)
        if not secrets <= self._secrets:
            self._secrets |= secrets
            self._known = {}

    def _setting(self, name: str, value: Any) -> tuple[Any, str]:
        if isinstance(value, ToolChoice):
            value = value.to_wire()
        if name == "tools" and isinstance(value, list):
            noted = [self._noted(each, _without_described_secrets) for each in value]
            return [each for each, _ in noted], digest_of([mark for _, mark in noted])
        data = to_jsonable(_schema(value) if name == "response_format" else value)
        written = self._written(_without_secrets(data, name, describes=name in _DESCRIBING))
        return written, digest_of(written)

    def _noted(self, value: Any, change: Callable[[Any], Any] = lambda data: data) -> tuple[Any, str]:
        known = self._known.get(id(value))
        if known is not None and known[0] is value and known[1] == value:
            return known[2:]
        written = self._written(change(to_jsonable(value)))
        mark = digest_of(written)
        if isinstance(value, dict):
            if len(self._known) >= _MOST_KNOWN:
                self._known = {}
            self._known[id(value)] = (value, _copied(value), written, mark)
        return written, mark

    def _written(self, value: Any, is_reply: bool = False) -> Any:
        """A part of a request or of a reply, with the texts that are written of it."""
        if isinstance(value, str):
            return self._text(value, is_reply)
        if isinstance(value, dict):
            return {name: self._written(part, is_reply) for name, part in value.items()}
        if isinstance(value, list):
            return [self._written(part, is_reply) for part in value]
        return value

    def _text(self, text: str, is_reply: bool) -> str:
        if len(text) >= _LONG and (name := _named_data(text)):
            return text if is_reply else name
        # The longest first: a key may be a part of another.
        for secret in sorted(self._secrets, key=lambda secret: (-len(secret), secret)):
            text = text.replace(secret, "[api key]")
        for kind, pattern in _SECRETS:
            text = pattern.sub(f"[{kind}]", text)
        text = without_secrets(text, is_secret=_is_value_of_secret)
        return text if self._scrub is None else self._scrub(text)


def _schema(value: Any) -> Any:
    """What stands for a class that says the form of an answer, as LiteLLM takes it; anything else as it is."""
    if not isinstance(value, type):
        return value
    try:
        schema = TypeAdapter(value).json_schema()
    except PydanticUserError:
        schema = {}
    return {"class": f"{value.__module__}:{value.__qualname__}", "schema": schema}


def _copied(data: Any) -> Any:
    """The same data in containers of its own; comparing the two takes little, as the texts are the same."""
    if isinstance(data, dict):
        return {name: _copied(part) for name, part in data.items()}
    return [_copied(part) for part in data] if isinstance(data, list) else data


def digest_of(data: Any) -> str:
    """What stands for plain JSON: equal for equal data, and in every process."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


def _named_data(text: str) -> str:
    """What stands for binary data; empty for a text that is none."""
    found = _DATA_URL.match(text)
    data = text[found.end() :] if found else text
    if not _BASE64.fullmatch(data):
        return ""
    digest = hashlib.sha256(data.encode()).hexdigest()
    return f"{found[0] if found else ''}[{len(data)} characters, sha256 {digest}]"


def _without_secrets(value: Any, name: str = "", describes: bool = False) -> Any:
    """A setting without what lets one in; in one that describes, a mapping may be named as a secret and be none."""
    is_data = isinstance(value, bool | int | float | None)
    is_whole = isinstance(value, str) or not describes or name.lower().endswith("headers")
    if _is_secret(name) and is_whole and not is_data:
        return "[left out]"
    if isinstance(value, dict):
        return {key: _without_secrets(part, str(key), describes) for key, part in value.items()}
    return [_without_secrets(part, "", describes) for part in value] if isinstance(value, list) else value


def _without_described_secrets(value: Any) -> Any:
    return _without_secrets(value, describes=True)


def _is_secret(name: str) -> bool:
    lowered = name.lower()
    return is_secret_name(name) or lowered.endswith("headers") or lowered in ("key", "signature", "passcode")


def _secrets_in(value: Any, name: str = "", is_secret: bool = False, describes: bool = False) -> set[str]:
    """The texts in settings that are keys: by their names, and in headers those that look like one."""
    if isinstance(value, str):
        words = [value, *value.split()]  # of `Bearer …` a service repeats the second word
        if is_secret:
            return {word for word in words if _is_key(word)}
        return {word for word in words if _RANDOM.fullmatch(word)} if name.endswith("headers") else set()
    if isinstance(value, list):
        return {secret for part in value for secret in _secrets_in(part, name, is_secret, describes)}
    found: set[str] = set()
    if isinstance(value, Mapping):
        inherits = is_secret and not describes
        for key, part in value.items():
            inside = "headers" if name.endswith("headers") else str(key).lower()
            found |= _secrets_in(part, inside, inherits or is_secret_name(str(key)), describes)
    return found


def _is_key(text: str) -> bool:
    """Whether a text that is named as a key may be one, and not `lm-studio` or another word of a text."""
    is_mixed = any(map(str.isdigit, text)) and any(map(str.isalpha, text))
    return len(text) >= (_SHORTEST_SECRET if is_mixed else _CERTAIN_SECRET)


def _is_value_of_secret(value: str) -> bool:
    """Whether what stands behind `password=` in a text is one: no word, no type and no other piece of code."""
    word = value.rpartition(" ")[2]  # without `Bearer`
    is_mixed = any(map(str.isdigit, word)) and any(map(str.isalpha, word))
    return _ONE_WORD.fullmatch(word) is not None and ((is_mixed and len(word) >= 7) or len(word) >= _CERTAIN_SECRET)


def _secrets_of_environment() -> set[str]:
    """Keys that a library of a provider may have read by itself."""
    named = (value for name, value in os.environ.items() if _KEY_OF_A_SERVICE.search(name))
    return {value for value in named if _is_key(value)}
