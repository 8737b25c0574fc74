"""A script for MCP clients: `effectful-agents serve mcp SCRIPT`. It needs the extra `mcp`.

command      the command
offered      the tools as the protocol describes them
server       the server: lists them, and has them called
calling      one call, in a thread of its own
answers      what came of a call, and questions to people, as the protocol writes them
"""
