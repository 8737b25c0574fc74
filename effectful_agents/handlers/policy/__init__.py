"""Authority: who may do what, who is asked, and what a stack says of itself."""

from effectful_agents.handlers.policy.governance import Governance
from effectful_agents.handlers.policy.grants import GrantEffects
from effectful_agents.handlers.policy.limits import Limits
from effectful_agents.handlers.policy.log import DecisionLog
from effectful_agents.handlers.policy.manifest import CompositionManifest, composition_manifest
from effectful_agents.handlers.policy.policies import Policy, RiskPolicy

__all__ = [
    "CompositionManifest",
    "DecisionLog",
    "Governance",
    "GrantEffects",
    "Limits",
    "Policy",
    "RiskPolicy",
    "composition_manifest",
]
