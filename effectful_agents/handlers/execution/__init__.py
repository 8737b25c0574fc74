"""Handlers that run code which a model wrote."""

from effectful_agents.handlers.execution.builtin import BuiltinExecutor
from effectful_agents.handlers.execution.policy import RestrictedPythonPolicy
from effectful_agents.handlers.execution.restricted import RestrictedPythonExecutor

__all__ = ["BuiltinExecutor", "RestrictedPythonExecutor", "RestrictedPythonPolicy"]
