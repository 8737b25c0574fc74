"""Evaluation: are rules in the prompt worth their tokens? Two versions of a skill are compared case by case.

python -m effectful_agents.harness llm_examples/evaluation/tickets.py [--repeat 3]
"""

import argparse
from typing import Literal

from effectful_agents import NotHandled, Skill
from effectful_agents.testing import Case, compare, evaluate
from effectful_agents.testing.evaluation import exact

type Topic = Literal["bug", "billing", "question"]


# Without tools: each would be offered the other one.
@Skill.define(tools=False)
def plain(ticket: str) -> Topic:
    """What is this about? The ticket: {ticket}"""
    raise NotHandled


@Skill.define(tools=False)
def with_rules(ticket: str) -> Topic:
    """What is this about?

    - `billing`: Anything about prices, payments and invoices, mistakes on them included.
    - `bug`: The program does what it should not, and it is no billing.
    - `question`: All else.

    The ticket: {ticket}
    """
    raise NotHandled


CASES = [
    Case("The app crashes when I log in.", name="crash", expected="bug"),
    Case("The app shows yesterday's messages twice.", name="messages twice", expected="bug"),
    Case("Do you have a dark mode?", name="dark mode", expected="question"),
    Case("Can two people share an account?", name="sharing", expected="question"),
    Case("I was charged twice in May.", name="charged twice", expected="billing"),
    Case("Why was I charged before the trial was over?", name="charged early", expected="billing"),
    *[
        Case(f"How can the {wrong} on my invoice be mended?", name=f"invoice {wrong}", expected="billing")
        for wrong in ("address", "currency", "date", "discount", "name", "total")
    ],
]


def tokens(usage) -> int:
    """What a case costs."""
    return (usage.input or 0) + (usage.output or 0)


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--repeat", type=int, default=1)
    repeat = options.parse_args().repeat
    before = evaluate(plain, CASES, [exact, tokens], repeat=repeat)
    after = evaluate(with_rules, CASES, [exact, tokens], repeat=repeat, name="with rules")
    print(after, compare(before, after, lower_is_better=["tokens"]), sep="\n\n")
