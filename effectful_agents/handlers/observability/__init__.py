"""Handlers that show what happens, and change nothing."""

from effectful_agents.handlers.observability.dump import SystemPromptDumper
from effectful_agents.handlers.observability.usage import UsageMeter, usage

__all__ = ["SystemPromptDumper", "UsageMeter", "usage"]
