"""An adviser that keeps facts about each user, and finds again those that a question is about.

python -m effectful_agents.harness llm_examples/remembering_facts.py ann I am allergic to nuts.
python -m effectful_agents.harness llm_examples/remembering_facts.py ann Are there any nuts that I may eat?
python -m effectful_agents.harness llm_examples/remembering_facts.py bob Are there any nuts that I may eat?

Every call is a conversation of its own. The facts are in `memory.db`; Bob's calls see nothing of Ann's.
"""

import sys

from effectful_agents import NotHandled, Skill, handler
from effectful_agents.handlers.memory import MemoryKeeper, RecallPrompter, SqliteMemoryStore
from effectful_agents.operations.memory import MemoryScope, recall


@Skill.define(tools=False)
def facts(request: str, answer: str) -> list[str]:
    """Which facts about the user does this exchange tell that will still matter in a month?

    One short sentence each, about "the user". Most exchanges tell none.

    The user said: {request}
    The answer was: {answer}
    """
    raise NotHandled


@Skill.define(tools=False)
def advise(question: str) -> str:
    """Answer in one or two sentences. The user says: {question}"""
    raise NotHandled


if __name__ == "__main__":
    user, *words = sys.argv[1:] or ["ann", "I", "am", "allergic", "to", "nuts."]
    memory = MemoryKeeper(SqliteMemoryStore("memory.db"), MemoryScope("example", user=user), extractor=facts)
    with handler(memory), handler(RecallPrompter()):
        print(advise(" ".join(words)))
        for fact in recall(None, 3):
            print(f"(known of {user}: {fact.text})")
