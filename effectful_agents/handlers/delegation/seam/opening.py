"""The program's side of the greeting: what was agreed on, and which tools the gateway knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from effectful_agents.errors import ProviderError
from effectful_agents.handlers.delegation.seam.failures import bounded
from effectful_agents.handlers.delegation.seam.gateway import Gateway, UnknownToolRef
from effectful_agents.handlers.delegation.seam.refs import ref_of
from effectful_agents.handlers.delegation.seam.versions import supported_versions
from effectful_agents.operations.call_context import current_call_context
from effectful_agents.operations.elsewhere import Hello, Welcome
from effectful_agents.operations.world import sleep

__all__ = ["Opening"]

_LONGEST_PAUSE = 60.0


class Opening:
    """What one program and its gateway have agreed on. Nothing is sent before it is needed.

    Args:
        gateway: The gateway.
        num_retries: How often something is asked again that failed and may be asked again.
    """

    def __init__(self, gateway: Gateway, num_retries: int) -> None:
        self._gateway = gateway
        self._num_retries = num_retries
        self._known: set[str] = set()
        self._last: Welcome | None = None

    @property
    def last(self) -> Welcome | None:
        """What the gateway answered last; None before it was asked anything."""
        return self._last

    def welcome(self) -> Welcome:
        """What the gateway answers; it is asked once.

        Raises:
            SeamVersionError: It speaks no version that is spoken here.
            ProviderError: It cannot be asked, or its answer is none.
        """
        return self._last or self.patiently(self._hello)

    def referring(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """A request with references in the place of its tools; those that the gateway does not know are told first."""
        if "tools" not in request:
            self.welcome()
            return dict(request)
        refs = [ref_of(tool) if tool.get("type") == "function" else "" for tool in request["tools"]]
        pairs = list(zip(refs, request["tools"], strict=True))
        unknown = {ref: tool for ref, tool in pairs if ref and ref not in self._known}
        if unknown or self._last is None:
            self.patiently(lambda: self._hello(unknown))
        tools = [{"ref": ref} if ref else tool for ref, tool in pairs]
        return {**request, "tools": tools}

    def once_more[T](self, ask: Callable[[], T]) -> T:
        """What `ask` gives; a gateway that was started anew is greeted, and asked again."""
        try:
            return self.patiently(ask)
        except UnknownToolRef:
            self._known.clear()
            self._last = None
            return self.patiently(ask)

    def patiently[T](self, ask: Callable[[], T]) -> T:
        """What `ask` gives, after a pause and once more where it fails in a way that may pass."""
        for attempt in range(self._num_retries):
            try:
                return ask()
            except ProviderError as error:
                pause = min(0.5 * 2**attempt, 8.0) if error.retry_after is None else error.retry_after
                if not error.retryable or pause > _LONGEST_PAUSE:
                    raise
            sleep(pause)
        return ask()

    def _hello(self, tools: Mapping[str, Any] = MappingProxyType({})) -> Welcome:
        hello = Hello(versions=supported_versions(), tools=tuple(tools.values()))
        welcome = self._gateway.hello(hello, current_call_context())
        for ref, tool in tools.items():
            name = tool["function"]["name"]
            # Two sides that name different things by one reference would show a model something else.
            if welcome.tool_refs.get(name) != ref:
                raise ProviderError(
                    f"the gateway has another reference for the tool `{bounded(name)}` than its definition gives; it "
                    "does not show models what the program sent.",
                    provider="gateway",
                    retryable=False,
                )
            self._known.add(ref)
        self._last = welcome
        return welcome
