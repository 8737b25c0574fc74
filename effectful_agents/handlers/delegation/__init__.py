"""Work that is done elsewhere: by other agents, tools of MCP servers, agents of other processes, and a gateway.

`effectful_agents.handlers.delegation.mcp` and `.a2a` need the extras of these names.
"""
