"""Agents of other processes, by the A2A protocol. It needs the extra `a2a`.

tasks      cards, tasks and artifacts as plain data
client     `A2AClient`, which asks an agent
delegate   `RemoteDelegate`, an agent of somebody else's as a tool
"""

from effectful_agents.handlers.delegation.a2a.client import A2AClient
from effectful_agents.handlers.delegation.a2a.delegate import RemoteDelegate
from effectful_agents.handlers.delegation.a2a.tasks import AgentCard, Artifact, OfferedSkill, Task, TaskState

__all__ = ["A2AClient", "AgentCard", "Artifact", "OfferedSkill", "RemoteDelegate", "Task", "TaskState"]
