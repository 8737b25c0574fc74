"""Handlers that let the model answer with code."""

from effectful_agents.handlers.synthesis.body import FinalBodySynthesizer
from effectful_agents.handlers.synthesis.expression import CallExpression
from effectful_agents.handlers.synthesis.implementation import (
    MethodSkillBody,
    SkillBody,
    SynthesizedMethodSkillBody,
    SynthesizedSkillBody,
)
from effectful_agents.handlers.synthesis.session import ReplSession
from effectful_agents.handlers.synthesis.snippet import StatefulReplSynthesizer
from effectful_agents.handlers.synthesis.toolcall import ExpressionToolCaller, MixedToolCaller

__all__ = [
    "CallExpression",
    "ExpressionToolCaller",
    "FinalBodySynthesizer",
    "MethodSkillBody",
    "MixedToolCaller",
    "ReplSession",
    "SkillBody",
    "StatefulReplSynthesizer",
    "SynthesizedMethodSkillBody",
    "SynthesizedSkillBody",
]
