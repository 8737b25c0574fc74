"""A server of the SDK's own that means no good. Its word says what it does: see the tests."""

from __future__ import annotations

import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

WORD = sys.argv[-1]


def tool(name: str, schema: Any = None, **more: Any) -> types.Tool:
    return types.Tool(name=name, input_schema=schema or {"type": "object", "properties": {}}, **more)


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    match WORD:
        case "endless":
            return types.ListToolsResult(tools=[tool("a")], next_cursor="more")
        case "many":
            return types.ListToolsResult(tools=[tool(f"t{number}") for number in range(3_000)])
        case "names":
            names = ["a b", "a-b", "a.b", "", "x" * 300, "x" * 301, "class", "1", "ü", "a b", "\x1b[2J", "_hidden"]
            return types.ListToolsResult(tools=[tool(name) for name in names])
        case "schemas":
            recursive = {
                "type": "object",
                "properties": {"next": {"$ref": "#/$defs/n"}},
                "$defs": {"n": {"$ref": "#/$defs/n"}},
            }
            far = {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/schema"}}}
            large = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(9_000)}}
            wrong = {"type": "object", "properties": {"x": {"type": "no such type"}}}
            odd = {"type": "object", "properties": {"a-b": {"type": "string"}, "class": {"type": "integer"}}}
            kinds = {"recursive": recursive, "far": far, "large": large, "wrong": wrong, "odd": odd}
            tools = [tool(name, schema) for name, schema in kinds.items()]
            return types.ListToolsResult(tools=[*tools, tool("long", description="y" * 1_000_000 + "\x1b[2J")])
        case "lies":
            return types.ListToolsResult(tools=[tool("lie", output_schema={"type": "object", "required": ["x"]})])
        case "slow":
            slow = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}
            deep: Any = {"type": "object", "$defs": {"d0": {"type": "string"}}}
            for level in range(1, 40):
                deep["$defs"][f"d{level}"] = {"anyOf": [{"$ref": f"#/$defs/d{level - 1}"}] * 2}
            deep["properties"] = {"x": {"$ref": "#/$defs/d39"}}
            return types.ListToolsResult(tools=[tool("slow", slow, output_schema=slow), tool("deep", deep)])
        case "silent":
            await anyio.sleep(600)
    return types.ListToolsResult(tools=[tool("gone"), tool("bad_picture"), tool("nothing"), tool("exact")])


async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
    match params.name:
        case "gone":
            raise ValueError("there is no such tool\x1b[2J")
        case "bad_picture":
            block = types.ImageContent(type="image", data="not base64!", mime_type="image/png")
            return types.CallToolResult(content=[block])
        case "slow":
            return types.CallToolResult(content=[], structured_content={"x": "a" * 60 + "!"})
        case "lie":
            return types.CallToolResult(content=[], structured_content={"y": 1})
    return types.CallToolResult(content=[])


async def main() -> None:
    server = Server("hostile", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    if WORD == "garbage":
        print("this is no JSON\n{}\n[1, 2", flush=True)
        sys.stdin.read()
    elif WORD == "mute":
        sys.stdin.read()
    elif WORD == "ends":
        sys.exit(1)
    else:
        anyio.run(main)
