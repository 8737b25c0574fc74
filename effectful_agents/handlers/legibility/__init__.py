"""Handlers that decide what the model sees: the tools of the scope, the framework's words, how much of the rest."""

from effectful_agents.handlers.legibility.compaction import HistoryCompactor
from effectful_agents.handlers.legibility.deferred import DeferredTools, worth_deferring
from effectful_agents.handlers.legibility.framework import FrameworkDocumenter
from effectful_agents.handlers.legibility.implicit import ImplicitToolExtractor
from effectful_agents.handlers.legibility.lexical import LexicalToolExtractor
from effectful_agents.handlers.legibility.output_cap import ToolOutputCap, cap_tool_output

__all__ = [
    "DeferredTools",
    "FrameworkDocumenter",
    "HistoryCompactor",
    "ImplicitToolExtractor",
    "LexicalToolExtractor",
    "ToolOutputCap",
    "cap_tool_output",
    "worth_deferring",
]
