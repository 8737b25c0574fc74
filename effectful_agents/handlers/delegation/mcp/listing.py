"""Asking a server what it has: lists that may have many pages, and may lie."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from mcp import Client
from mcp_types import PaginatedRequestParams

from effectful_agents.handlers.delegation.mcp.results import MCPPrompt, MCPResource, cut

__all__ = ["prompts_of", "resources_of", "tools_of"]

_log = logging.getLogger("effectful_agents.mcp")

_MOST_PAGES = 100
_MOST = 1_000


async def tools_of(client: Any) -> tuple[list[Any], str]:
    """The tools of a server, as it describes them, and its name."""
    info = client.server_info
    name = info.name if info is not None else ""
    if client.server_capabilities.tools is None:
        return [], name
    return await _pages(_session(client).list_tools, "tools"), name


async def resources_of(client: Any) -> list[MCPResource]:
    """What a server lets one read."""
    if client.server_capabilities.resources is None:
        return []
    whole = [
        MCPResource(str(one.uri), cut(one.name), cut(one.description), one.mime_type or "")
        for one in await _pages(_session(client).list_resources, "resources")
    ]
    return whole + [
        MCPResource(one.uri_template, cut(one.name), cut(one.description), one.mime_type or "", is_template=True)
        for one in await _pages(_session(client).list_resource_templates, "resource_templates")
    ]


async def prompts_of(client: Any) -> list[MCPPrompt]:
    """The prompts that a server keeps."""
    if client.server_capabilities.prompts is None:
        return []
    return [_prompt(one) for one in await _pages(_session(client).list_prompts, "prompts")]


def _prompt(described: Any) -> MCPPrompt:
    arguments = described.arguments or []
    required = frozenset(one.name for one in arguments if one.required)
    return MCPPrompt(described.name, cut(described.description), tuple(one.name for one in arguments), required)


async def _pages(method: Callable[..., Any], field: str) -> list[Any]:
    """All that a server lists; one that never comes to an end is not followed for ever."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await method(params=PaginatedRequestParams(cursor=cursor))
        found += getattr(page, field)
        cursor = page.next_cursor
        if not cursor or len(found) > _MOST:
            break
    if cursor or len(found) > _MOST:
        _log.warning("a server lists more %s than %d; the others are left out", field.replace("_", " "), _MOST)
    return found[:_MOST]


def _session(client: Any) -> Any:
    return client.session if isinstance(client, Client) else client
