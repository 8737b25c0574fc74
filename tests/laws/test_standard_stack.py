"""The list of handlers that `harness` makes, in its order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from effectful_agents import harness
from effectful_agents.handlers.durability import MemoryCheckpointer
from tests.ids import shown

FULL = [
    "AgentLoop",
    "DeferredTools",
    "MixedToolCaller",
    "LexicalToolExtractor",
    "LiteLLMConfigurer",
    "LocalModel",
    "FrameworkDocumenter",
    "HistoryBuilder",
    "TyTypeChecker",
    "BuiltinExecutor",
    "StatefulReplSynthesizer",
    "FinalBodySynthesizer",
    "PydanticSkillArgValidator",
    "TenacityRetryer",
    "ToolOutputCap",
]
OF_CODE = ["MixedToolCaller", "TyTypeChecker", "BuiltinExecutor", "StatefulReplSynthesizer", "FinalBodySynthesizer"]
DUMPING = [*FULL[:8], "SystemPromptDumper", *FULL[8:]]
LIMITED = [*FULL[:4], "RateLimit", *FULL[4:]]
FALLING_BACK = [*FULL[:6], "Fallback", *FULL[6:]]
RENDERING = [*FULL[:8], "RichTerminalRenderer", *FULL[8:]]


def without(*names: str) -> list[str]:
    return [one for one in FULL if one not in names]


def with_other(name: str, other: str) -> list[str]:
    return [other if one == name else one for one in FULL]


BRIEF = without("FrameworkDocumenter", *OF_CODE)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, FULL),
        ({"model": "gpt-5-mini"}, FULL),
        ({"system_prompt": "full", "model": "local/smollm2"}, without(*OF_CODE)),
        ({"model": "local/smollm2", "eval_provider": "builtin"}, without("FrameworkDocumenter")),
        ({"eval_provider": "none"}, without(*OF_CODE)),
        ({"type_checker": "none"}, without("TyTypeChecker")),
        ({"eval_provider": "restricted"}, with_other("BuiltinExecutor", "RestrictedPythonExecutor")),
        ({"type_checker": "mypy"}, with_other("TyTypeChecker", "MypyTypeChecker")),
        ({"tool_calling": "json"}, without("MixedToolCaller")),
        ({"tool_calling": "code"}, with_other("MixedToolCaller", "ExpressionToolCaller")),
        ({"system_prompt": "brief"}, BRIEF),
        ({"model": "local/smollm2"}, BRIEF),
        ({"num_retries": 0}, without("TenacityRetryer")),
        ({"dump_system_prompt": "prompt.md"}, DUMPING),
        ({"render": True}, RENDERING),
        ({"requests_per_minute": 60}, LIMITED),
        ({"tokens_per_minute": 10_000}, LIMITED),
        ({"fallback": ["gpt-5-mini"]}, FALLING_BACK),
        ({"fallback": []}, FULL),
        ({"journal": MemoryCheckpointer()}, [*FULL, "Journal"]),
        ({"journal": MemoryCheckpointer(), "run_id": "monday"}, [*FULL, "Journal"]),
        ({"check_contracts": False}, without("PydanticSkillArgValidator")),
        ({"tool_collection": "none"}, without("LexicalToolExtractor")),
        ({"defer_tools": False}, without("DeferredTools")),
        ({"defer_tools": 500}, FULL),
        ({"tool_collection": "auto"}, with_other("LexicalToolExtractor", "ImplicitToolExtractor")),
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
    ids=shown,
)
def test_the_handlers_of_the_standard_stack(options: dict[str, Any], expected: list[str]) -> None:
    assert [type(layer).__name__ for layer in harness(**options).layers] == expected


def test_what_keeps_agents_is_the_innermost(tmp_path: Path) -> None:
    layers = harness(persist_db=tmp_path / "agents.db").layers
    assert [type(layer).__name__ for layer in layers] == [*FULL, "SQLitePersister"]
