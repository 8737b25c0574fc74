"""Rules for `Governance`: what may be said, asked of tools, and answered."""

from effectful_agents.handlers.policy.rules.arguments import ArgumentRule
from effectful_agents.handlers.policy.rules.hosts import HostRule
from effectful_agents.handlers.policy.rules.paths import PathRule
from effectful_agents.handlers.policy.rules.redaction import Redaction
from effectful_agents.handlers.policy.rules.rule import Refuse, Rule
from effectful_agents.handlers.policy.rules.untrusted import UntrustedContent

__all__ = ["ArgumentRule", "HostRule", "PathRule", "Redaction", "Refuse", "Rule", "UntrustedContent"]
