"""The trace that a call belongs to, as it is handed on from process to process."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Self

from effectful_agents.runtime import Operation

__all__ = ["CallContext", "current_call_context"]


@dataclasses.dataclass(frozen=True, slots=True)
class CallContext:
    """A place in a trace, in the two headers of W3C Trace Context; empty where there is none.

    What serves a request puts that of its caller in force, and a tracer begins there:

        with handler({current_call_context: lambda: CallContext.from_headers(request.headers)}):
            answer(question)

    What makes a request sends `current_call_context().headers()` along. Without a tracer that is what came in.

    Attributes:
        traceparent: The trace, and the span in it.
        tracestate: What the systems on the way have noted, as they wrote it.

    >>> CallContext.from_headers({"Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}).headers()
    {'traceparent': '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'}
    >>> CallContext.from_headers({"traceparent": "something else"}).headers()
    {}
    """

    traceparent: str = ""
    tracestate: str = ""

    @classmethod
    def from_headers(cls, headers: Mapping[str, str]) -> Self:
        """Read the headers of a request, whatever the case of their names; what is not well formed counts as absent."""
        found = {str(name).lower(): value for name, value in headers.items()}
        parent = str(found.get("traceparent", "")).strip()
        if not _PARENT.fullmatch(parent):
            return cls()
        return cls(parent, str(found.get("tracestate", "")).strip())

    def headers(self) -> dict[str, str]:
        """The headers of a request that is made in this place; those without a value are left out."""
        pairs = {"traceparent": self.traceparent, "tracestate": self.tracestate}
        return {name: value for name, value in pairs.items() if value}


_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")


@Operation.define
def current_call_context() -> CallContext:
    """Where in a trace the code is; by default in none.

    Whoever receives a request handles it to say where that came from, and a tracer to say which of its spans is open.
    """
    return CallContext()
