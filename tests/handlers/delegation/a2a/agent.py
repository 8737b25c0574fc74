"""An agent on the SDK's own server, for the tests. What a brief begins with says what it does."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import uvicorn
from a2a import types as wire
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from google.protobuf import json_format, struct_pb2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

SENT: list[str] = []
HEADERS: list[dict[str, str]] = []


class Executor(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text = context.get_user_input()
        SENT.append(text)
        if text.startswith("at once"):
            parts = [wire.Part(text="done at once")]
            await event_queue.enqueue_event(
                wire.Message(message_id="m", role=wire.Role.ROLE_AGENT, parts=parts, context_id=context.context_id)
            )
            return
        task = context.current_task
        if task is None:
            state = wire.TaskStatus(state=wire.TaskState.TASK_STATE_SUBMITTED)
            task = wire.Task(id=context.task_id, context_id=context.context_id, status=state)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        message = updater.new_agent_message
        await updater.start_work()
        match text.partition(" ")[0]:
            case "fail":
                await updater.failed(message([wire.Part(text="the press is broken\x1b[2J")]))
            case "reject":
                await updater.reject()
            case "ask":
                await updater.requires_input(message([wire.Part(text="Which colour?")]))
            case "login":
                await updater.requires_auth(message([wire.Part(text="Who are you?")]))
            case "wait":
                await asyncio.sleep(float(text.split()[1]))
                await updater.add_artifact([wire.Part(text="waited")])
                await updater.complete()
            case "data":
                data = json_format.ParseDict({"a": [1, 2]}, struct_pb2.Value())
                await updater.add_artifact([wire.Part(data=data)])
                await updater.complete()
            case "picture":
                await updater.add_artifact([wire.Part(raw=b"\x89PNG", media_type="image/png"), wire.Part(text="a dot")])
                await updater.complete()
            case _:
                await updater.add_artifact([wire.Part(text=f"made: {text}")], name="result")
                await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def application(port: int) -> Any:
    card = wire.AgentCard(
        name="Print Shop",
        description="Prints things.",
        version="1.0",
        capabilities=wire.AgentCapabilities(streaming=True),
        supported_interfaces=[
            wire.AgentInterface(url=f"http://127.0.0.1:{port}/", protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[wire.AgentSkill(id="print", name="print", description="Print a poster.", tags=["print"])],
    )
    requests = DefaultRequestHandler(Executor(), InMemoryTaskStore(), card)

    async def seen(request: Request) -> JSONResponse:
        return JSONResponse({"sent": SENT, "headers": HEADERS})

    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(requests, "/"), Route("/seen", seen)]
    app = Starlette(routes=routes)

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/":
            HEADERS.append({name.decode(): value.decode() for name, value in scope["headers"]})
        await app(scope, receive, send)

    return noting


if __name__ == "__main__":
    uvicorn.run(application(int(sys.argv[1])), port=int(sys.argv[1]), log_level="error")
