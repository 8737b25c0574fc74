"""A chat that streams: each answer is printed as it is written. Type a line and press return; an empty one ends it.

python -m effectful_agents.harness llm_examples/streaming_chat.py
"""

import sys

from effectful_agents import Agent, NotHandled, Skill, stream
from effectful_agents.messages import TextDelta


class Companion(Agent):
    """A friendly companion who answers in one or two sentences."""

    @Skill.define
    def answer(self, line: str) -> str:
        """{line}"""
        raise NotHandled


def say(companion: Companion, line: str) -> None:
    """Print an answer piece by piece. Ctrl-C ends it, and the companion forgets the question."""
    with stream(companion.answer, line) as pieces:
        try:
            for event in pieces:
                if isinstance(event, TextDelta):
                    print(event.text, end="", flush=True)
        except KeyboardInterrupt:
            print(" …", end="")
    print()


if __name__ == "__main__":
    companion = Companion()
    if sys.stdin.isatty():
        print("> ", end="", flush=True)
    for line in map(str.strip, sys.stdin):
        if not line:
            break
        say(companion, line)
        if sys.stdin.isatty():
            print("> ", end="", flush=True)
