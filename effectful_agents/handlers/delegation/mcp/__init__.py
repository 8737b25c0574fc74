"""Tools, resources and prompts of MCP servers. It needs the extra `mcp`.

tools         `MCPTools`, the handler that offers them
described     what a server says of its tools, as tools of the program
results       what a server answers, as values and content parts
asked         what a server asks: a model, or a person
connection    the connection to a server, owned by one task
"""

from effectful_agents.handlers.delegation.mcp.described import mcp_risk
from effectful_agents.handlers.delegation.mcp.results import MCPPrompt, MCPResource
from effectful_agents.handlers.delegation.mcp.tools import MCPTools

__all__ = ["MCPPrompt", "MCPResource", "MCPTools", "mcp_risk"]
