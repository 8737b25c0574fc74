"""The server: it lists what is offered, and has it called."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import mcp_types
from mcp.server import Server
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from effectful_agents.harness.serving.mcp.answers import NOBODY, answer_of, form_of, refused
from effectful_agents.harness.serving.mcp.calling import Call, Conversations, Done
from effectful_agents.harness.serving.mcp.offered import Offered
from effectful_agents.messages.text import printable_text
from effectful_agents.operations.call_context import CallContext
from effectful_agents.operations.policy import Question
from effectful_agents.runtime import Interpretation

__all__ = ["Publisher"]

_MOST_SESSIONS = 1_000
_MOST_WAITING = 200
_SECONDS_OF_WAITING = 900.0
_CAN_ASK = mcp_types.ClientCapabilities(elicitation=mcp_types.ElicitationCapability())


class Publisher:
    """What is behind the server.

    Args:
        offered: What is published, by name.
        stack: The handlers in which calls are made.
    """

    def __init__(self, offered: Mapping[str, Offered], stack: Interpretation) -> None:
        self._offered = offered
        self._stack = stack
        # The conversations of each session, those that were used last at the end.
        self._sessions: OrderedDict[str, Conversations] = OrderedDict()
        # Calls that wait for a person, whose client comes back with the answer.
        self._waiting: OrderedDict[str, tuple[Call, Question, float]] = OrderedDict()

    def server(self, name: str, description: str, version: str) -> Server[Any]:
        """A server of the SDK."""
        return Server(
            name,
            version=version,
            instructions=description or None,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    async def _list(self, context: Any, params: Any) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(tools=[one.described for one in self._offered.values()])

    async def _call(self, context: Any, params: Any) -> Any:
        if params.request_state is not None:
            return await self._go_on(context, params)
        offered = self._offered.get(params.name)
        if offered is None:
            known = ", ".join(f"`{name}`" for name in self._offered)
            return refused(f"There is no tool `{printable_text(params.name[:100])}`; there are {known}.")
        call = Call(
            offered,
            params.arguments or {},
            self._stack,
            self._conversations(context),
            CallContext.from_headers(_headers(context)),
            follows="progress_token" in (context.meta or {}),
        )
        return await self._led(context, call)

    async def _led(self, context: Any, call: Call) -> Any:
        """What a call comes to; questions that it asks go to the client."""
        done = 0
        try:
            while True:
                event = await call.next()
                if isinstance(event, Done):
                    done += 1
                    await context.session.report_progress(done, None, event.text)
                elif not isinstance(event, Question):
                    return event
                elif not context.session.check_client_capability(_CAN_ASK):
                    call.answer(NOBODY)
                elif context.protocol_version in MODERN_PROTOCOL_VERSIONS:
                    return self._asked(call, event)
                else:
                    form = form_of(event)
                    said = await context.session.elicit_form(
                        form.message, form.requested_schema, related_request_id=context.request_id
                    )
                    call.answer(answer_of(event, said))
        except BaseException:  # the client has cancelled it, or is gone
            call.abandon()
            raise

    def _asked(self, call: Call, question: Question) -> mcp_types.InputRequiredResult:
        """Have the client ask somebody, and come back."""
        self._forget_late_ones()
        state = secrets.token_urlsafe(24)
        self._waiting[state] = call, question, time.monotonic()
        request = mcp_types.ElicitRequest(params=form_of(question))
        return mcp_types.InputRequiredResult(input_requests={"question": request}, request_state=state)

    async def _go_on(self, context: Any, params: Any) -> Any:
        self._forget_late_ones()
        call, question, _ = self._waiting.pop(params.request_state, (None, None, 0.0))
        if call is None or question is None or call.name != params.name:
            return refused("This call does not wait any more. Make it again.")
        said = (params.input_responses or {}).get("question")
        call.answer(answer_of(question, said if isinstance(said, mcp_types.ElicitResult) else None))
        return await self._led(context, call)

    def _forget_late_ones(self) -> None:
        too_late = time.monotonic() - _SECONDS_OF_WAITING
        while self._waiting:
            call, _, since = next(iter(self._waiting.values()))
            if since > too_late and len(self._waiting) < _MOST_WAITING:
                return
            self._waiting.popitem(last=False)
            call.abandon()

    def _conversations(self, context: Any) -> Conversations:
        """Those of the session. A request over HTTP that belongs to none has its own, for its own time."""
        request = context.request
        key = "" if request is None else request.headers.get("mcp-session-id")
        # In the newest version nobody has looked whether it is the session of this client.
        if key is None or (request is not None and context.protocol_version in MODERN_PROTOCOL_VERSIONS):
            return Conversations()
        if key not in self._sessions and len(self._sessions) >= _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        kept = self._sessions.setdefault(key, Conversations())
        self._sessions.move_to_end(key)
        return kept


def _headers(context: Any) -> dict[str, str]:
    """What the client says of the trace: in the request itself, or else in the headers."""
    said = dict(context.meta or {})
    headers = dict(context.request.headers) if context.request is not None else {}
    return {
        name: value
        for name in ("traceparent", "tracestate")
        if isinstance(value := said.get(name, headers.get(name)), str)
    }
