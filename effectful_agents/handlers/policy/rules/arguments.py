"""Rules about the arguments of tools."""

from __future__ import annotations

import fnmatch
import ipaddress
import os
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from effectful_agents.encoding import to_jsonable
from effectful_agents.encoding.handwritten import held_to
from effectful_agents.errors import AgentsError, OptionError
from effectful_agents.handlers.policy.rules.rule import Rule
from effectful_agents.operations.policy import Decision, Disposition, EffectKind, ProposedEffect
from effectful_agents.types import Tool

__all__ = ["ArgumentRule", "HostRule", "PathRule"]

type Tools = Tool[..., Any] | Iterable[Tool[..., Any]] | None


class ArgumentRule(Rule):
    """Let tools be called with some arguments only.

    Args:
        tools: The tool, or the tools, that it is for; None: all.
        allow: Gets the decoded arguments by name, and says whether the call may be made.
        schema: A JSON schema of the arguments, as an object with a property for each.
        message: What the model is told.
        name: What refusals and the decision log call it.

    Raises:
        OptionError: There is neither `allow` nor `schema`, or `tools` are none.
        EncodingError: `schema` is no JSON schema.

    >>> @Tool.define
    ... def pay(amount: int) -> str:
    ...     '''Pay.'''
    ...     return "paid"
    >>> rule = ArgumentRule(pay, schema={"properties": {"amount": {"maximum": 100}}})
    >>> rule.tool_call(ProposedEffect(kind="tool_call", name="pay", tool=pay, arguments={"amount": 500})).message
    'amount: 500 is greater than the maximum of 100'
    """

    def __init__(
        self,
        tools: Tools = None,
        allow: Callable[[Mapping[str, Any]], Any] | None = None,
        *,
        schema: dict[str, Any] | None = None,
        message: str = "",
        name: str = "",
    ) -> None:
        if allow is None and schema is None:
            raise OptionError("an `ArgumentRule` has `allow`, a function, or `schema`, or both.")
        super().__init__(name or getattr(allow, "__name__", "").strip("<>") or "arguments")
        self.tools = _tools(tools)
        self._allow = allow
        self._problems = None if schema is None else held_to(schema, f"the `schema` of the rule `{self.name}`")
        self._message = message

    def tool_call(self, effect: ProposedEffect, /) -> Decision | None:
        if not _is_for(self.tools, effect):
            return None
        problems = [] if self._problems is None else self._problems(to_jsonable(effect.arguments))
        if not problems and (self._allow is None or self._allow(effect.arguments)):
            return None
        message = self._message or "; ".join(problems) or f"`{effect.name}` may not be called with these arguments."
        return Decision(Disposition.DENY_STEP, "arguments", message)


class PathRule(Rule):
    """Let tools reach files in some folders only.

    It is about every argument that is a `Path`, and about texts in the arguments that are named. Links and `..` are
    resolved first, against the folder that the program runs in, and the tool gets the path so resolved, so that it is
    what was looked at. What changes in the folders between this and the tool's own access is the tool's to guard.

    Args:
        folders: The folders, at least one.
        tools: The tool, or the tools, that it is for; None: all.
        arguments: Names of arguments whose texts are paths.

    Raises:
        OptionError: There is no folder.

    >>> rule = PathRule("/srv/data", arguments=["file"])
    >>> asked = ProposedEffect(kind="tool_call", name="read", arguments={"file": "/srv/data/../../etc/passwd"})
    >>> rule.tool_call(asked).message
    'The path /etc/passwd is outside of the folders that are allowed.'
    """

    def __init__(
        self, *folders: str | os.PathLike[str], tools: Tools = None, arguments: Iterable[str] = ("path", "file")
    ) -> None:
        super().__init__("paths")
        if not folders:
            raise OptionError("a `PathRule` has at least one folder.")
        self.folders = tuple(Path(os.path.realpath(folder)) for folder in folders)
        self.tools = _tools(tools)
        self.arguments = frozenset(arguments)

    def tool_call(self, effect: ProposedEffect, /) -> Decision | None:
        if not _is_for(self.tools, effect):
            return None
        resolved = {name: self._resolved(value, name in self.arguments) for name, value in effect.arguments.items()}
        for path in _paths(resolved.values()):
            if not any(path == folder or folder in path.parents for folder in self.folders):
                return Decision(
                    Disposition.DENY_STEP, "path", f"The path {path} is outside of the folders that are allowed."
                )
        return Decision(arguments={name: _plain(value, effect.arguments[name]) for name, value in resolved.items()})

    def _resolved(self, value: Any, named: bool) -> Any:
        if isinstance(value, PurePath) or (named and isinstance(value, str)):
            return Path(os.path.realpath(os.path.expanduser(value)))
        if isinstance(value, list | tuple | set | frozenset) and type(value) in (list, tuple, set, frozenset):
            return type(value)(self._resolved(one, named) for one in value)
        if type(value) is dict:
            return {key: self._resolved(one, named) for key, one in value.items()}
        return value


def _paths(values: Iterable[Any]) -> Iterator[Path]:
    for value in values:
        if isinstance(value, Path):
            yield value
        elif type(value) is dict:
            yield from _paths(value.values())
        elif type(value) in (list, tuple, set, frozenset):
            yield from _paths(value)


def _plain(value: Any, before: Any) -> Any:
    """A resolved value in the form that the tool asked for: a text where it takes texts."""
    if isinstance(value, Path):
        if isinstance(before, str):
            return str(value)
        return before if value == before else type(before)(value)
    if type(value) in (list, tuple):
        return type(value)(_plain(one, other) for one, other in zip(value, before, strict=True))
    if type(value) is dict:
        return {key: _plain(one, before[key]) for key, one in value.items()}
    if type(value) in (set, frozenset):
        return type(value)(str(one) if isinstance(one, Path) and _has_text(before) else one for one in value)
    return value


def _has_text(values: Iterable[Any]) -> bool:
    return any(isinstance(value, str) for value in values)


class HostRule(Rule):
    """Let tools reach some hosts only, by `https` or `http`.

    It is about every text in the arguments that has the form of an address, and all texts in the arguments that are
    named. An address that browsers and libraries may read differently is refused: with a backslash, a space or a
    control character in it, with a user's name, or with a host that is no plain name.

    Args:
        hosts: Names of hosts, `*.example.org` for all below; numeric addresses only where they stand here literally.
        tools: The tool, or the tools, that it is for; None: all.
        arguments: Names of arguments whose texts are addresses.
        schemes: Schemes that are allowed.

    Raises:
        OptionError: There is no host.

    >>> rule = HostRule("example.org", "*.example.org")
    >>> asked = ProposedEffect(kind="tool_call", name="fetch", arguments={"url": "https://example.org@evil.example"})
    >>> rule.tool_call(asked).message
    'The address `https://example.org@evil.example` is not allowed.'
    """

    def __init__(
        self,
        *hosts: str,
        tools: Tools = None,
        arguments: Iterable[str] = ("url",),
        schemes: Iterable[str] = ("https", "http"),
    ) -> None:
        super().__init__("hosts")
        if not hosts:
            raise OptionError("a `HostRule` has at least one host.")
        self.hosts = tuple(host.lower().rstrip(".") for host in hosts)
        self.tools = _tools(tools)
        self.arguments = frozenset(arguments)
        self.schemes = frozenset(schemes)

    def tool_call(self, effect: ProposedEffect, /) -> Decision | None:
        if not _is_for(self.tools, effect):
            return None
        for name, value in effect.arguments.items():
            for text in _texts(value):
                if (name in self.arguments or "://" in text) and not self._allows(text):
                    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
                    return Decision(Disposition.DENY_STEP, "host", f"The address `{shown}` is not allowed.")
        return None

    def _allows(self, text: str) -> bool:
        if not text.isascii() or "\\" in text or any(character <= " " or character == "\x7f" for character in text):
            return False
        try:
            parts = urllib.parse.urlsplit(text)
            host, _ = parts.hostname, parts.port
        except ValueError:
            return False
        if parts.scheme not in self.schemes or not host or "@" in parts.netloc or "%" in host:
            return False
        host = host.rstrip(".")
        if _is_numeric(host):
            return host in self.hosts
        return any(_matches(host, allowed) for allowed in self.hosts)


_SHOWN = 200


def _matches(host: str, allowed: str) -> bool:
    return fnmatch.fnmatchcase(host, f"*{allowed[1:]}") if allowed.startswith("*.") else host == allowed


def _is_numeric(host: str) -> bool:
    """Whether a host is an address in numbers, in any of the forms that libraries take: `127.1`, `0x7f.1`."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return all(part.isdigit() or part.lower().startswith("0x") for part in host.split("."))
    return True


def _texts(value: Any) -> Iterator[str]:
    """All texts in a value, those of its attributes included."""
    if isinstance(value, str):
        yield value
        return
    try:
        yield from _of_json(to_jsonable(value))
    except AgentsError:  # it has no form on the wire: then what it says about itself
        yield str(value)


def _of_json(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _of_json(key)
            yield from _of_json(one)
    elif isinstance(value, Sequence):
        for one in value:
            yield from _of_json(one)


def _tools(tools: Tools) -> frozenset[Tool] | None:
    if tools is None:
        return None
    chosen = frozenset([tools] if isinstance(tools, Tool) else tools)
    if not all(isinstance(tool, Tool) for tool in chosen):
        raise OptionError(f"`tools` of a rule are tools, made with `Tool.define`; these are {tools!r}.")
    return chosen


def _is_for(tools: frozenset[Tool] | None, effect: ProposedEffect) -> bool:
    if effect.kind not in (EffectKind.TOOL_CALL, EffectKind.DELEGATE):
        return False
    return tools is None or effect.tool in tools or (effect.tool is not None and effect.tool.function in tools)
