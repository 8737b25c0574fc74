"""Handlers that check what goes into a call, and the code that a model writes."""

from effectful_agents.handlers.validation.pydantic import PydanticSkillArgValidator

__all__ = ["PydanticSkillArgValidator"]
