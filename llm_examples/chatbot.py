"""A chatbot: an agent remembers, because calls of its skills continue one history.

python -m effectful_agents.harness llm_examples/chatbot.py
"""

import dataclasses

from effectful_agents import Agent, NotHandled, Skill


@dataclasses.dataclass
class ChatBot(Agent):
    """A friendly companion who answers in one or two sentences."""

    bot_name: str

    @Skill.define
    def send(self, user_input: str) -> str:
        """You are {self.bot_name}. The user writes: {user_input}"""
        raise NotHandled


if __name__ == "__main__":
    bot = ChatBot("Robin")
    for line in ("Hi! How are you? I am in France.", "Remind me again: where am I?"):
        print(f"> {line}\n{bot.send(line)}")
