"""A chatbot that remembers across processes: what was said, and what it noted in a field.

python -m effectful_agents.harness llm_examples/remembering.py --persist-db chat.db I am Ann, and I like tea.
python -m effectful_agents.harness llm_examples/remembering.py --persist-db chat.db What could you offer me?
"""

import dataclasses
import sys

from effectful_agents import Agent, NotHandled, Skill, Tool


@dataclasses.dataclass
class Companion(Agent):
    """A friendly companion who answers in one or two sentences, and notes what it learns about the user."""

    __agent_id__: str
    facts: list[str] = dataclasses.field(default_factory=list)

    @Tool.define
    def note(self, fact: str) -> None:
        """Note a fact about the user, to know it in a year."""
        self.facts.append(fact)

    @Skill.define
    def send(self, text: str) -> str:
        """The user writes: {text}"""
        raise NotHandled


if __name__ == "__main__":
    companion = Companion("companion")
    print(companion.send(" ".join(sys.argv[1:]) or "Hi!"))
    print(f"(noted so far: {'; '.join(companion.facts) or 'nothing'})")
