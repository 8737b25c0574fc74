"""Handlers that check what goes into a call, and the code that a model writes."""

from effectful_agents.handlers.validation.pydantic import PydanticSkillArgValidator
from effectful_agents.handlers.validation.ty import TyTypeChecker

__all__ = ["PydanticSkillArgValidator", "TyTypeChecker"]
