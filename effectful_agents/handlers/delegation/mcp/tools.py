"""The handler that offers the tools of an MCP server."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import logging
import math
import os
import threading
from collections.abc import Callable, Collection, Generator, Mapping, Sequence, Set
from typing import Any, Self

from mcp import Client, ClientSession
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from effectful_agents.encoding.handwritten import held_to
from effectful_agents.errors import EncodingError, OptionError, PeerError
from effectful_agents.handlers.delegation.mcp.asked import Asked
from effectful_agents.handlers.delegation.mcp.connection import (
    Connection,
    GivenSession,
    Reached,
    over_http,
    over_stdio,
)
from effectful_agents.handlers.delegation.mcp.described import made_tool, mcp_risk, names_for
from effectful_agents.handlers.delegation.mcp.listing import prompts_of, resources_of, tools_of
from effectful_agents.handlers.delegation.mcp.results import (
    MCPPrompt,
    MCPResource,
    messages_of,
    resource_parts,
    size_of,
    value_of,
)
from effectful_agents.handlers.delegation.mcp.schemas import tamed
from effectful_agents.messages import ContentPart, Message
from effectful_agents.messages.text import printable_text
from effectful_agents.operations.call_context import current_call_context
from effectful_agents.operations.loop import AssistantResult, call_assistant
from effectful_agents.runtime import ObjectInterpretation, fwd, implements
from effectful_agents.types import Risk, Scope, Tool
from effectful_agents.types.walk import ToolSet

__all__ = ["MCPTools"]

_log = logging.getLogger("effectful_agents.mcp")

type Progress = Callable[[str, float, float | None, str | None], None]
"""Gets the tool, how far it is, how far it goes, and what it says, as far as the server tells."""


@dataclasses.dataclass(frozen=True)
class _Made:
    """A tool that was made of what the server says.

    Attributes:
        key: What it was made of.
        tool: The tool.
        output: The schema of its result, as the server has it; None where it has none.
    """

    key: str
    tool: Tool[..., Any]
    output: Mapping[str, Any] | None

    @functools.cached_property
    def _problems(self) -> Callable[[Any], list[str]]:
        if self.output is None:
            return lambda value: []
        return held_to(tamed(self.output), "the schema of the result")

    def problem(self, value: Any) -> str:
        """What keeps a structured value from fitting the schema; empty for nothing."""
        try:
            return "; ".join(self._problems(value))
        except EncodingError as error:
            return str(error)


class MCPTools(ObjectInterpretation[Any, Any]):
    """Offer the tools of an MCP server to the model, in the calls inside of the block.

    `MCPTools.stdio` starts a server, `MCPTools.http` connects to one; both connect at the first use, from any thread,
    task or event loop, and again where the server has died. `MCPTools(session)` takes a session of the SDK that the
    program owns. The tools are ordinary ones: policies decide about them, a journal keeps what they returned, code may
    call them. What they return is text, the structured value of the server, or content parts where there are pictures,
    sounds or documents. A server's own questions are answered by the program: the model is asked by `completion`, and a
    person by `request_approval`.

    When the server says that its tools are others, the next turn has these.

    Args:
        session: A `ClientSession` or `Client` of the SDK, initialized.
        prefix: What stands before the names of the tools; None for the name that the server gives itself.
        only: The tools to offer, by the names that the server gives them; None for all.
        risk: Makes the risk of a tool of its annotations.
        timeout: Seconds that a call may take.
        offer_resources: Whether two tools are added with which the model lists and reads the server's resources.
        on_progress: Called when a tool tells how far it is.
        max_bytes: How large a result may be.

    Raises:
        OptionError: An option has a value that it cannot have.
        PeerError: From a call that needs the server: it cannot be reached, or fails.
    """

    def __init__(
        self,
        session: ClientSession | Client | Reached,
        *,
        prefix: str | None = None,
        only: Collection[str] | None = None,
        risk: Callable[[Any], Risk] = mcp_risk,
        timeout: float | None = 60.0,
        offer_resources: bool = False,
        on_progress: Progress | None = None,
        max_bytes: int = 4_000_000,
    ) -> None:
        if timeout is not None:
            _check_seconds("timeout", timeout)
        if not isinstance(session, ClientSession | Client | Reached):
            raise OptionError(
                f"`session` is {type(session).__name__}; it is a session of the SDK. `MCPTools.stdio(command)` and "
                "`MCPTools.http(url)` make one by themselves."
            )
        self._changed = threading.Event()
        self._changed.set()
        if isinstance(session, Reached):
            self.peer = session.peer
            self._connection: Connection = session.connect(self._changed.set)
        else:
            self.peer = "the server of the session"
            self._connection = GivenSession(session, self.peer)
        self._prefix = prefix
        self._only = None if only is None else frozenset(only)
        self._risk = risk
        self._timeout = timeout
        self._offers_resources = offer_resources
        self._on_progress = on_progress
        self._most = max_bytes
        self._tools = ToolSet()
        self._made: dict[str, _Made] = {}
        self._reading: Sequence[Tool[..., Any]] = ()
        self._installed = 0
        self._counting = threading.Lock()

    @classmethod
    def stdio(
        cls,
        command: str,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        connect_timeout: float = 30.0,
        sampling: bool = True,
        elicitation: bool = True,
        protocol: str = "auto",
        **options: Any,
    ) -> Self:
        """The tools of a server that is a program: it is started at the first use, and ends with the last block.

        Args:
            command: The program.
            args: Its arguments.
            env: Variables of its environment, beside a few that any program needs; it gets no others of this process.
            cwd: The folder in which it runs.
            connect_timeout: Seconds that it may take to start.
            sampling: Whether it may have the model asked.
            elicitation: Whether it may have people asked.
            protocol: "auto" finds out which version of the protocol it speaks; "legacy" does not ask.
            options: Those of `MCPTools`.
        """
        _check_seconds("connect_timeout", connect_timeout)
        peer = printable_text(os.path.basename(command))
        transport = over_stdio(command, list(args), dict(env) if env is not None else None, cwd)
        _check_protocol(protocol)
        return cls(Reached(peer, transport, connect_timeout, Asked(peer, sampling, elicitation), protocol), **options)

    @classmethod
    def http(
        cls,
        url: str,
        *,
        headers: Mapping[str, str] | Callable[[], Mapping[str, str]] | None = None,
        connect_timeout: float = 30.0,
        sampling: bool = True,
        elicitation: bool = True,
        protocol: str = "auto",
        **options: Any,
    ) -> Self:
        """The tools of a server that listens at an address, by streamable HTTP.

        Args:
            url: The address.
            headers: What each request carries, a token say; or a function that makes it when a connection begins.
            connect_timeout: Seconds that it may take to connect.
            sampling: Whether it may have the model asked.
            elicitation: Whether it may have people asked.
            protocol: "auto" finds out which version of the protocol it speaks; "legacy" does not ask.
            options: Those of `MCPTools`.
        """
        _check_seconds("connect_timeout", connect_timeout)
        if not url.startswith(("http://", "https://")):
            raise OptionError(f"`url` is {url!r}; it is an address such as `http://127.0.0.1:8000/mcp`.")

        def made() -> dict[str, str]:
            given: Any = headers() if callable(headers) else headers
            return dict(given or {})

        peer = printable_text(url.partition("?")[0].rpartition("@")[2])
        transport = over_http(url, made, connect_timeout)
        _check_protocol(protocol)
        return cls(Reached(peer, transport, connect_timeout, Asked(peer, sampling, elicitation), protocol), **options)

    def __repr__(self) -> str:
        return f"MCPTools({self.peer!r})"

    def manifest(self) -> Mapping[str, object]:
        return {"mcp": self.peer, "only": None if self._only is None else sorted(self._only)}

    # --- installing ---------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def while_installed(self) -> Generator[None]:
        with self._counting:
            self._installed += 1
        try:
            yield
        finally:
            with self._counting:
                self._installed -= 1
                is_last = not self._installed
            if is_last:
                self.close()

    def close(self) -> None:
        """End the connection, and a server that was started; the next use begins anew."""
        self._connection.close()
        self._changed.set()

    # --- tools --------------------------------------------------------------------------------------------------------

    @property
    def tools(self) -> Sequence[Tool[..., Any]]:
        """The tools, as the program may use them too; the server is asked where that is not known.

        Raises:
            PeerError: It cannot be reached, or its list cannot be read.
        """
        return self._listed().order

    def tool(self, name: str) -> Tool[..., Any]:
        """One of the tools, by the name that the server gives it, or by that which a model sees.

        Raises:
            PeerError: There is none of this name.
        """
        offered = {tool.__name__: tool for tool in self.tools}
        found = self._made[name].tool if name in self._made else offered.get(name)
        if found is None:
            known = ", ".join(f"`{tool.__name__}`" for tool in self.tools[:50])
            raise PeerError(f"`{self.peer}` has no tool `{name}`; it has {known or 'none'}.", peer=self.peer)
        return found

    @implements(call_assistant)
    def call_assistant(
        self, messages: Sequence[Message], response_type: Any, env: Mapping[str, Any], tools: Set[Tool] = frozenset()
    ) -> AssistantResult[Any]:
        offered = self.discover(env)
        return fwd(messages, response_type, env, offered.after(tools)) if offered else fwd()

    def discover(self, env: Mapping[str, Any]) -> ToolSet:
        """The tools that a skill is offered."""
        return ToolSet() if isinstance(env, Scope) and not env.skill.uses_tools else self._listed()

    def _listed(self) -> ToolSet:
        if self._changed.is_set():
            self._changed.clear()
            try:
                self._tools = self._read()
            except BaseException:
                self._changed.set()
                raise
        return self._tools

    def _read(self) -> ToolSet:
        described, own_name = self._perform(tools_of, again=True)
        prefix = own_name if self._prefix is None else self._prefix
        wanted = {tool.name: tool for tool in described if self._only is None or tool.name in self._only}
        names = names_for(wanted, prefix)
        made: dict[str, _Made] = {}
        for name, offered_as in names.items():
            key = f"{offered_as} {wanted[name].model_dump_json()}"
            kept = self._made.get(name)
            if kept is None or kept.key != key:
                tool = made_tool(wanted[name], offered_as, self._called, self._risk, self.peer)
                kept = None if tool is None else _Made(key, tool, wanted[name].output_schema)
            if kept is not None:
                made[name] = kept
        self._made = made
        tools = [one.tool for one in made.values()]
        tools += self._readers(prefix) if self._offers_resources else ()
        # The same set for the same tools, so that what was made of it stays.
        return self._tools if tuple(tools) == self._tools.order else ToolSet(tools)

    def _called(self, name: str, arguments: dict[str, Any]) -> Any:
        made = self._made.get(name)
        meta: Any = current_call_context().headers() or None

        async def progress(done: float, total: float | None, message: str | None) -> None:
            _log.debug("`%s` of `%s` is at %s of %s", name, self.peer, done, total)
            if self._on_progress is not None:
                self._on_progress(name, done, total, message)

        async def ask(client: Any) -> Any:
            return await client.call_tool(name, arguments, progress_callback=progress, meta=meta)

        result = self._perform(ask, again=made is not None and made.tool.idempotent)
        structured = 0 if result.structured_content is None else len(json.dumps(result.structured_content))
        self._check_size(size_of(result.content) + structured, f"the result of `{name}`")
        if made is not None and not result.is_error and (problem := made.problem(result.structured_content)):
            raise PeerError(f"the result of `{name}` does not fit its schema: {problem}", peer=self.peer)
        try:
            return value_of(result, self.peer, name)
        except ValueError as error:
            raise PeerError(f"the result of `{name}` cannot be used: {error}", peer=self.peer) from error

    def _check_size(self, size: int, what: str) -> None:
        if size > self._most:
            raise PeerError(
                f"{what} has {size:,} characters, and `max_bytes` is {self._most:,}. Ask it for less.", peer=self.peer
            )

    def _perform(self, ask: Callable[[Any], Any], *, again: bool = False) -> Any:
        return self._connection.perform(ask, timeout=self._timeout, again=again)

    # --- resources and prompts ----------------------------------------------------------------------------------------

    def resources(self) -> list[MCPResource]:
        """What the server lets one read, templates of addresses included.

        Raises:
            PeerError: It cannot be reached, or fails.
        """
        return self._perform(resources_of, again=True)

    def read_resource(self, uri: str) -> list[ContentPart]:
        """What is in a resource, as parts: text, a picture, or a document.

        Raises:
            PeerError: There is none at this address, or it cannot be used.
        """

        async def ask(client: Any) -> Any:
            return await client.read_resource(uri)

        contents = self._perform(ask, again=True).contents
        self._check_size(size_of(contents), f"`{printable_text(uri)}`")
        try:
            return [part for one in contents for part in resource_parts(one)]
        except ValueError as error:
            raise PeerError(f"`{printable_text(uri)}` cannot be used: {error}", peer=self.peer) from error

    def prompts(self) -> list[MCPPrompt]:
        """The prompts that the server keeps.

        Raises:
            PeerError: It cannot be reached, or fails.
        """
        return self._perform(prompts_of, again=True)

    def prompt(self, name: str, /, **arguments: str) -> list[Message]:
        """The messages of a prompt of the server, to begin a conversation with: `run(skill, …, history=messages)`.

        Raises:
            PeerError: There is none of this name, or arguments are missing.
        """

        async def ask(client: Any) -> Any:
            return await client.get_prompt(name, arguments)

        messages = self._perform(ask, again=True).messages
        self._check_size(size_of(one.content for one in messages), f"the prompt `{name}`")
        try:
            return messages_of(messages)
        except ValueError as error:
            raise PeerError(f"the prompt `{name}` cannot be used: {error}", peer=self.peer) from error

    def _readers(self, prefix: str) -> Sequence[Tool[..., Any]]:
        """The tools with which a model lists and reads resources; the same ones as long as they have these names."""
        names = names_for(["list_resources", "read_resource"], prefix)
        if [tool.__name__ for tool in self._reading] == list(names.values()):
            return self._reading

        def list_resources() -> list[dict[str, Any]]:
            return [
                {"uri": one.uri, "name": one.name, "description": one.description, "template": one.is_template}
                for one in self.resources()
            ]

        def read_resource(uri: str) -> Any:
            return self.read_resource(uri)

        told: dict[Any, str] = {
            list_resources: f"List what can be read of {self.peer}: addresses, and templates of addresses.",
            read_resource: f"Read a resource of {self.peer}.\n\nArgs:\n    uri: Its address.",
        }
        self._reading = tuple(
            Tool.define(one, name=names[one.__name__], description=text, idempotent=True) for one, text in told.items()
        )
        return self._reading


def _check_protocol(protocol: Any) -> None:
    if protocol not in ("auto", "legacy", *MODERN_PROTOCOL_VERSIONS):
        raise OptionError(f"`protocol` is {protocol!r}; it is 'auto', 'legacy' or {MODERN_PROTOCOL_VERSIONS[-1]!r}.")


def _check_seconds(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise OptionError(f"`{name}` is {value!r}; it is a number of seconds above 0.")
