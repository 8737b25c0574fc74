"""Authority: who may do what, who is asked, and what a stack says of itself.

The tool `ask_user` is here too, and not in `__all__`: a model is offered the tools that a module sees, and
`import *` is to bring none.
"""

from effectful_agents.handlers.policy.ask_user import ask_user as ask_user
from effectful_agents.handlers.policy.governance import Governance
from effectful_agents.handlers.policy.grants import GrantEffects
from effectful_agents.handlers.policy.host import AgentHost, CallOutcome
from effectful_agents.handlers.policy.human import HumanInteraction
from effectful_agents.handlers.policy.ledgers import MemoryLedger
from effectful_agents.handlers.policy.limits import Limits
from effectful_agents.handlers.policy.log import DecisionLog
from effectful_agents.handlers.policy.manifest import CompositionManifest, composition_manifest
from effectful_agents.handlers.policy.policies import Policy, RiskPolicy
from effectful_agents.handlers.policy.sqlite_ledger import SqliteLedger
from effectful_agents.handlers.policy.terminal import AskInTerminal
from effectful_agents.handlers.policy.tokens import HmacSigner, Signer

__all__ = [
    "AgentHost",
    "AskInTerminal",
    "CallOutcome",
    "CompositionManifest",
    "DecisionLog",
    "Governance",
    "GrantEffects",
    "HmacSigner",
    "HumanInteraction",
    "Limits",
    "MemoryLedger",
    "Policy",
    "RiskPolicy",
    "Signer",
    "SqliteLedger",
    "composition_manifest",
]
