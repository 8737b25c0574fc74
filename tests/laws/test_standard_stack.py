"""The list of handlers that `harness` makes, in its order."""

from __future__ import annotations

from typing import Any

import pytest

from effectful_agents import harness

FULL = [
    "AgentLoop",
    "DeferredTools",
    "LexicalToolExtractor",
    "LiteLLMConfigurer",
    "LocalModel",
    "FrameworkDocumenter",
    "HistoryBuilder",
    "PydanticSkillArgValidator",
    "TenacityRetryer",
    "ToolOutputCap",
]
BRIEF = [name for name in FULL if name != "FrameworkDocumenter"]
DUMPING = [*FULL[:7], "SystemPromptDumper", *FULL[7:]]
RENDERING = [*FULL[:7], "RichTerminalRenderer", *FULL[7:]]


def without(name: str) -> list[str]:
    return [one for one in FULL if one != name]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, FULL),
        ({"model": "gpt-5-mini"}, FULL),
        ({"system_prompt": "full", "model": "local/smollm2"}, FULL),
        ({"system_prompt": "brief"}, BRIEF),
        ({"model": "local/smollm2"}, BRIEF),
        ({"num_retries": 0}, without("TenacityRetryer")),
        ({"dump_system_prompt": "prompt.md"}, DUMPING),
        ({"render": True}, RENDERING),
        ({"check_contracts": False}, without("PydanticSkillArgValidator")),
        ({"tool_collection": "none"}, without("LexicalToolExtractor")),
        ({"defer_tools": False}, without("DeferredTools")),
        ({"defer_tools": 500}, FULL),
        ({"tool_collection": "auto"}, ["AgentLoop", "DeferredTools", "ImplicitToolExtractor", *FULL[3:]]),
        (
            {
                "model": "local/smollm2",
                "num_retries": 0,
                "render": True,
                "dump_system_prompt": "prompt.md",
                "check_contracts": False,
                "tool_collection": "none",
                "defer_tools": False,
            },
            [
                *("AgentLoop", "LiteLLMConfigurer", "LocalModel", "HistoryBuilder"),
                *("RichTerminalRenderer", "SystemPromptDumper", "ToolOutputCap"),
            ],
        ),
    ],
    ids=str,
)
def test_the_handlers_of_the_standard_stack(options: dict[str, Any], expected: list[str]) -> None:
    assert [type(layer).__name__ for layer in harness(**options).layers] == expected
