"""Handlers that show what happens, and change nothing."""

from effectful_agents.handlers.observability.dump import SystemPromptDumper

__all__ = ["SystemPromptDumper"]
