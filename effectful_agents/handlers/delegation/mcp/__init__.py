"""Tools, resources and prompts of MCP servers. It needs the extra `mcp`."""
