"""Work that is done elsewhere: by another skill or agent, or by another process, which holds the keys and the policy.

`Delegate` offers a skill or an agent to another one, as a tool.

`RemoteOperations` is the handler in the program. What is on the other side is a `Gateway`: `effectful-agents serve
gateway` runs one (`effectful_agents.harness.serving.gateway`), and `StackGateway` is one in the same process.
"""

from effectful_agents.handlers.delegation.delegate import Delegate
from effectful_agents.handlers.delegation.seam.gateway import Gateway, UnknownToolRef
from effectful_agents.handlers.delegation.seam.http import HttpGateway
from effectful_agents.handlers.delegation.seam.remote import RemoteOperations
from effectful_agents.handlers.delegation.seam.stack import StackGateway
from effectful_agents.handlers.delegation.seam.versions import (
    SEAM_VERSION,
    SUPPORT_WINDOW,
    negotiate,
    supported_versions,
)

__all__ = [  # noqa: RUF022 - sorted as those of all packages are, and the linter puts constants first
    "Delegate",
    "Gateway",
    "HttpGateway",
    "RemoteOperations",
    "SEAM_VERSION",
    "SUPPORT_WINDOW",
    "StackGateway",
    "UnknownToolRef",
    "negotiate",
    "supported_versions",
]
