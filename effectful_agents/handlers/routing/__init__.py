"""Routing: which of its tools a turn offers.

Routing narrows what is offered. It grants nothing, and is no authorization: who may do what is for
`effectful_agents.handlers.policy`.
"""

from effectful_agents.handlers.routing.context import RoutingContext
from effectful_agents.handlers.routing.keywords import KeywordRouter, keyword_router
from effectful_agents.handlers.routing.router import ToolRouter

__all__ = ["KeywordRouter", "RoutingContext", "ToolRouter", "keyword_router"]
