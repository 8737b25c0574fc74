"""Handlers that run code which a model wrote."""

from effectful_agents.handlers.execution.builtin import BuiltinExecutor

__all__ = ["BuiltinExecutor"]
