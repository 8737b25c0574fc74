"""Handlers that decide what the model sees: tools in scope, the framework's words, prompts, how much of the rest."""

from effectful_agents.handlers.legibility.compaction import HistoryCompactor
from effectful_agents.handlers.legibility.deferred import DeferredTools, worth_deferring
from effectful_agents.handlers.legibility.framework import FrameworkDocumenter
from effectful_agents.handlers.legibility.implicit import ImplicitToolExtractor
from effectful_agents.handlers.legibility.lexical import LexicalToolExtractor
from effectful_agents.handlers.legibility.output_cap import ToolOutputCap, cap_tool_output
from effectful_agents.handlers.legibility.prompt_files import FilePrompts
from effectful_agents.handlers.legibility.prompts import InMemoryPrompts, PromptProvider, PromptRegistry
from effectful_agents.operations.templates import PromptTemplate, PromptVersion

__all__ = [
    "DeferredTools",
    "FilePrompts",
    "FrameworkDocumenter",
    "HistoryCompactor",
    "ImplicitToolExtractor",
    "InMemoryPrompts",
    "LexicalToolExtractor",
    "PromptProvider",
    "PromptRegistry",
    "PromptTemplate",
    "PromptVersion",
    "ToolOutputCap",
    "cap_tool_output",
    "worth_deferring",
]
