"""Handlers that decide what the model sees: the tools of the scope, and the documentation of the framework."""

from effectful_agents.handlers.legibility.framework import FrameworkDocumenter
from effectful_agents.handlers.legibility.lexical import LexicalToolExtractor

__all__ = ["FrameworkDocumenter", "LexicalToolExtractor"]
