"""An editor hands two questions at once to a researcher and one draft to a critic; it sees neither's tools nor talk.

python -m effectful_agents.harness llm_examples/delegates.py [TOPIC]
"""

import sys
from dataclasses import dataclass, field

from effectful_agents import Agent, NotHandled, Skill, Tool
from effectful_agents.handlers.delegation import Delegate

LIBRARY = {
    "glacier": "Glaciers hold about 69 percent of the fresh water of the earth.",
    "aletsch": "The Great Aletsch Glacier is the largest of the Alps, about 20 km long.",
    "moraine": "A moraine is rubble that a glacier has carried along and left behind.",
}


@dataclass
class Researcher(Agent):
    """Finds out facts in the library. Ask it one question at a time."""

    looked_up: list[str] = field(default_factory=list)

    @Tool.define
    def look_up(self, word: str) -> str:
        """What the library says about a word; empty where it says nothing."""
        self.looked_up.append(word)
        return LIBRARY.get(word.lower(), "")

    @Skill.define
    def research(self, question: str) -> str:
        """Find out from the library, in a sentence or two: {question}"""
        raise NotHandled


@Skill.define(tools=False)
def _criticise(draft: str) -> str:
    """Say in one sentence what to improve about this draft: {draft}"""
    raise NotHandled


_researcher = Researcher()


class Editor(Agent):
    """You write for a magazine that everybody reads."""

    # Two questions may be researched side by side; the researcher may do nothing but ask its model and look up.
    ask_researcher = Delegate(
        _researcher, name="ask_researcher", concurrent=True, grants=["model_call", "tool_call"], timeout=120
    )
    ask_critic = Delegate(_criticise, name="ask_critic", description="Says what to improve about a draft.")

    @Skill.define
    def write(self, topic: str) -> str:
        """Write three sentences about {topic}. Have the facts researched first, and a draft criticised."""
        raise NotHandled


if __name__ == "__main__":
    print(Editor().write(sys.argv[1] if len(sys.argv) > 1 else "glaciers"))
    print("looked up:", ", ".join(sorted(_researcher.looked_up)))
