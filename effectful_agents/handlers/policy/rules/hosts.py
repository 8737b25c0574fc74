"""A rule about the hosts that tools reach."""

from __future__ import annotations

import ipaddress
import json
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from effectful_agents.errors import OptionError
from effectful_agents.handlers.policy.rules.options import names_given
from effectful_agents.handlers.policy.rules.parameters import check_names
from effectful_agents.handlers.policy.rules.rule import Rule
from effectful_agents.handlers.policy.rules.settings import tool_names
from effectful_agents.handlers.policy.rules.values import CONTAINERS, NotUnderstood, parts, text_of
from effectful_agents.handlers.policy.tools import Tools, chosen_tools, is_call_of
from effectful_agents.operations.policy import Decision, Disposition, ProposedEffect
from effectful_agents.types.kinds import is_a

__all__ = ["HostRule"]


class HostRule(Rule):
    """Let tools reach some hosts only, by `https` or `http`.

    In what is named, whether it is an argument, a key of a mapping or an attribute of an object, each text has to be an
    address that is allowed; it holds nothing but texts, URLs, None, and lists, tuples, sets and dicts of them. In all
    other texts the addresses that stand in them are looked for: `scheme://`, `//host`, `https:host`, those with
    backslashes, and a `mailto:`, `data:` or `javascript:` that the text begins with. Each has to be allowed. What
    cannot be looked into, such as a generator, is refused. The code that `exec_code` and its like get is left out,
    unless they are among `tools`: what it calls is asked about when it calls it.

    An address that browsers and libraries may read differently is refused: with a backslash, a space or a control
    character in it, with a user's name, or with a host that is no plain name: letters, digits and hyphens, with single
    dots between and none at the end.

    Args:
        hosts: Names of hosts, `*.example.org` for all below; numeric addresses only where they stand here literally.
        tools: The tool, or the tools, that it is for, a method for all that override it, too; None: all.
        arguments: Names of arguments whose texts are addresses.
        schemes: Schemes that are allowed.

    Raises:
        OptionError: There is no host, one is no plain name, `arguments` or `schemes` is no list of names, or none of
            `tools` has an argument of that name.

    >>> rule = HostRule("example.org", "*.example.org")
    >>> def asked(**arguments):
    ...     return rule.tool_call(ProposedEffect(kind="tool_call", name="fetch", arguments=arguments))
    >>> asked(url="https://example.org@evil.example").message
    'The address `https://example.org@evil.example` is not allowed.'
    >>> asked(text="It is on https://www.example.org/page, I think.")
    >>> asked(text="It is on https://evil.example, I think.").message
    'The address `https://evil.example` is not allowed.'
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
        self.hosts = tuple(_host(host) for host in hosts)
        self.tools = chosen_tools(tools)
        self.arguments = frozenset(names_given(arguments, "arguments", "of arguments"))
        if self.arguments != {"url"}:
            check_names(self.arguments, self.tools, self.name)
        self.schemes = frozenset(names_given(schemes, "schemes", "of schemes"))

    def settings(self) -> Mapping[str, Any]:
        names = {name: sorted(getattr(self, name)) for name in ("hosts", "arguments", "schemes")}
        return {**super().settings(), **names, "tools": tool_names(self.tools)}

    def tool_call(self, effect: ProposedEffect, /) -> Decision | None:
        if not is_call_of(effect, self.tools):
            return None
        if self.tools is None and effect.tool is not None and effect.tool.runs_code:
            return None
        try:
            for name, value in effect.arguments.items():
                for address in self._addresses(value, name in self.arguments, set()):
                    if not self._allows(address):
                        shown = address if len(address) <= _SHOWN else f"{address[:_SHOWN]}…"
                        return Decision(Disposition.DENY_STEP, "host", f"The address `{shown}` is not allowed.")
        except NotUnderstood as error:
            return Decision(Disposition.DENY_STEP, "host", f"No address can be seen in the arguments: {error}.")
        return None

    def _addresses(self, value: Any, named: bool, seen: set[int]) -> Iterator[str]:
        """What is an address in a value, or may be taken for one; `seen` are the objects that it is in."""
        text = text_of(value)
        if named and text is not None and is_a(value, str) and type(value) is not str:
            raise NotUnderstood(value)
        if text is not None:
            yield from [text] if named else _in_text(text)
            return
        if type(value) is not dict and type(value) not in CONTAINERS:
            if named and value is not None:
                raise NotUnderstood(value)
            if id(value) in seen:
                return
            seen.add(id(value))
        if is_a(value, bytes, bytearray):
            yield from _in_text(bytes.join(b"", [value]).decode("latin-1"))
        for name, part in parts(value):
            yield from self._addresses(part, named or name in self.arguments, seen)

    def _allows(self, text: str) -> bool:
        if not text.isascii() or _UNCLEAR.search(text):
            return False
        try:
            parts = urllib.parse.urlsplit(text)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            return False
        literal = f"[{host}]" if ":" in host else host
        if parts.scheme not in self.schemes or parts.netloc.lower() not in (literal, f"{literal}:{port}"):
            return False
        if _is_numeric(host):
            return host in self.hosts
        return _NAME.fullmatch(host) is not None and any(_matches(host, allowed) for allowed in self.hosts)


_SHOWN = 200
_UNCLEAR = re.compile(r"[\x00-\x20\x7f\\]")
_NAME = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*")


def _host(host: str) -> str:
    lower = host.lower() if isinstance(host, str) else ""
    if not _is_numeric(lower) and not _NAME.fullmatch(lower.removeprefix("*.")):
        raise OptionError(
            f"`{host}` is no host for a `HostRule`: it is a name such as `example.org`, in its ASCII form, without a "
            "dot at its end, or `*.example.org` for all below."
        )
    return lower


def _matches(host: str, allowed: str) -> bool:
    return host.endswith(allowed[1:]) if allowed.startswith("*.") else host == allowed


def _is_numeric(host: str) -> bool:
    """Whether a host is an address in numbers, in any of the forms that libraries take: `127.1`, `0x7f.1`."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        last = host.rpartition(".")[2]
        return last.isdigit() or re.fullmatch("0x[0-9a-f]*", last) is not None
    return True


# --- addresses in texts -----------------------------------------------------------------------------------------------

_NETWORK = "https?|wss?|s?ftps?|file|gopher|ldaps?|smb|tftp|telnet|ssh|jar|blob|view-source"
_WHOLE = re.compile(
    rf"(?:(?:{_NETWORK}|mailto|data|javascript|vbscript):(?=\S)|[a-z][a-z0-9+.-]+:[/\\]{{2}}|[/\\]{{2}}(?=\S))", re.I
)
"""How a text begins that is an address as a whole."""
_BEGINS = re.compile(
    r"[a-z][a-z0-9+.-]{1,30}:[/\\]{2}"  # with any scheme, wherever it stands
    rf"|(?<![\w+.-])(?:{_NETWORK}):(?=[\w\[/\\])"  # `https:host`, which is taken for `https://host`
    r"|(?<![^\s\"'(<\[{=,;>|`])[/\\]{2}(?=[\w\[])",  # `//host`, and not `a//b`
    re.I,
)
_ENDS = re.compile(r"[\s\"'<>`{}|^]")


def _in_text(text: str) -> Iterator[str]:
    """The addresses in a text: those of its leaves, if it is JSON; all of it, if it is one."""
    begun = text.lstrip(_SPACE)
    leaves = _of_json(begun) if begun[:1] in ("{", "[", '"') else None
    if leaves is not None:
        for leaf in leaves:
            yield from _in_text(leaf)
        return
    if re.match(r"\\/(?!\\/)", begun):
        yield begun
    text = text.replace("\\/", "/")
    begun = text.lstrip(_SPACE)
    whole = _WHOLE.match(begun)
    # What begins like an address, and has no space in it, is one as a whole: clients leave line breaks out of it.
    if whole and (" " not in begun.rstrip(" ") or not _BEGINS.match(begun)):
        yield begun.rstrip(" ")
        return
    for found in _BEGINS.finditer(text):
        authority = _authority(text, found.end(), with_spaces=found.start() == len(text) - len(begun))
        if "@" in authority:
            yield found[0] + authority
        end = _ENDS.search(text, found.end(), found.end() + _LONG)
        yield text[found.start() : end.start() if end else found.end() + _LONG].rstrip(_AROUND)


def _authority(text: str, start: int, with_spaces: bool) -> str:
    """What clients may take for name and host: at the beginning of a text, even with spaces in it."""
    ends = re.compile(r"[/?#\\]" if with_spaces else r"[\s/?#\\]")
    found = ends.search(text, start, start + _LONG)
    return text[start : found.start() if found else start + _LONG]


_LONG = 2000  # of an address, what is looked at where it stands in a text
_SPACE = "".join(map(chr, range(0x21)))  # what clients take away before they read an address
_AROUND = ".,;:!?)]*_"  # what stands after an address in a sentence


def _of_json(text: str) -> Iterator[str] | None:
    """The texts in JSON, with those of members that come twice; None if it is none."""
    try:
        value = json.loads(text, object_pairs_hook=lambda pairs: [one for pair in pairs for one in pair])
    except (ValueError, RecursionError):
        return None
    return _leaves(value)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _leaves(one)
