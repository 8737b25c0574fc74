"""A server of the SDK's own, for the tests: over stdio, or over HTTP where an address is given."""

from __future__ import annotations

import base64
import os
import sys
from typing import Annotated

import anyio
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, MCPServer, Resolve, Sample
from mcp_types import CreateMessageResult, ImageContent, SamplingMessage, TextContent, ToolAnnotations
from pydantic import BaseModel

server = MCPServer("weather-box")
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


class Forecast(BaseModel):
    city: str
    degrees: float


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def forecast(city: str, days: int = 1) -> Forecast:
    """The forecast for a city."""
    return Forecast(city=city, degrees=20.5 + days)


@server.tool()
def note(text: str) -> str:
    """Write a note down."""
    return f"noted: {text}"


@server.tool(annotations=ToolAnnotations(destructive_hint=False, idempotent_hint=True, open_world_hint=False))
def picture() -> list[TextContent | ImageContent]:
    """A picture of the sky."""
    return [
        TextContent(type="text", text="The sky"),
        ImageContent(type="image", data=PIXEL, mime_type="image/png"),
    ]


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("the barometer is broken")


@server.tool()
def huge() -> str:
    """A very long text."""
    return "x" * 150_000


@server.tool()
async def slow(ctx: Context, seconds: float) -> str:
    """Take a while."""
    await ctx.report_progress(0, None, "begun")
    await anyio.sleep(seconds)
    return "done"


@server.tool()
def die() -> str:
    """End the server."""
    os._exit(3)


@server.tool()
def pid() -> int:
    """The process."""
    return os.getpid()


@server.tool()
async def counted(ctx: Context, steps: int) -> str:
    """Tell how far it is."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
    return "counted"


@server.tool()
async def trace(ctx: Context) -> str:
    """The trace of the call."""
    meta = ctx.request_context.meta
    return str((meta or {}).get("traceparent", "none"))


@server.tool()
async def grow(ctx: Context) -> str:
    """Have one tool more."""

    @server.tool()
    def grown() -> str:
        """A tool that was not there before."""
        return "grown"

    await ctx.session.send_tool_list_changed()
    await ctx.notify_tools_changed()
    return "grew"


class Wish(BaseModel):
    city: str


class Order(BaseModel):
    size: int
    sugar: bool


async def wish() -> Elicit[Wish]:
    return Elicit("Which city?", Wish)


async def order() -> Elicit[Order]:
    return Elicit("What shall it be?", Order)


async def opinion() -> Sample:
    text = TextContent(type="text", text="What is the sky like?")
    return Sample([SamplingMessage(role="user", content=text)], max_tokens=20)


@server.tool()
async def wished(chosen: Annotated[ElicitationResult[Wish], Resolve(wish)]) -> str:
    """Ask for a city."""
    return f"{chosen.action}: {getattr(getattr(chosen, 'data', None), 'city', None)}"


@server.tool()
async def ordered(chosen: Annotated[ElicitationResult[Order], Resolve(order)]) -> str:
    """Ask for an order."""
    return f"{chosen.action}: {getattr(chosen, 'data', None)}"


@server.tool()
async def opined(reply: Annotated[CreateMessageResult, Resolve(opinion)]) -> str:
    """Ask the model."""
    return f"the model says {reply.content.text}"


@server.resource("notes://all", mime_type="text/plain")
def notes() -> str:
    """All notes."""
    return "one\ntwo"


@server.resource("notes://{name}")
def one_note(name: str) -> str:
    """One note."""
    return "x" * 300_000 if name == "huge" else f"note {name}"


@server.prompt()
def greeting(name: str) -> str:
    """Greet somebody."""
    return f"Say hello to {name}."


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
