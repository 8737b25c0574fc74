"""A script as an MCP server: `effectful-agents serve mcp SCRIPT`."""
