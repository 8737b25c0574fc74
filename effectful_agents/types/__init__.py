"""The nouns: Skill, Tool, Agent, and what they are made of."""

from effectful_agents.types.agent import Agent
from effectful_agents.types.history import History
from effectful_agents.types.risk import Risk
from effectful_agents.types.scope import LexicalContext, Scope
from effectful_agents.types.skill import Skill, Template
from effectful_agents.types.template import PromptTemplate, PromptVersion
from effectful_agents.types.tool import Effect, Tool

__all__ = [
    "Agent",
    "Effect",
    "History",
    "LexicalContext",
    "PromptTemplate",
    "PromptVersion",
    "Risk",
    "Scope",
    "Skill",
    "Template",
    "Tool",
]
