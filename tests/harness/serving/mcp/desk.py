"""A desk that answers questions."""

import dataclasses
import time

from effectful_agents import Agent, NotHandled, Risk, Skill, Tool
from effectful_agents.handlers.policy import RiskPolicy, ask_user
from effectful_agents.operations.call_context import current_call_context
from effectful_agents.operations.loop import completion
from effectful_agents.testing import calls, says

print("this comes while the script is loaded")


@dataclasses.dataclass
class Stock:
    item: str
    number: int


@Tool.define(idempotent=True)
def stock(item: str, at: int = 0) -> Stock:
    """How many of an item are in stock.

    Args:
        item: What it is.
    """
    print("this comes while a tool is called")
    return Stock(item, 3 + at)


@Tool.define
def names() -> list[str]:
    """All names."""
    return ["bolt", "nut"]


@Tool.define(risk=Risk.HARD_WRITE)
def order(item: str) -> str:
    """Order an item."""
    return f"ordered {item}"


@Tool.define(risk=Risk.SOFT_WRITE)
def fail(kind: str) -> str:
    """Fail."""
    if kind == "exit":
        raise SystemExit(3)
    if kind == "file":
        open("/nowhere/private/place.txt")  # noqa: SIM115
    if kind == "own":
        raise ValueError("no such shelf, key sk-abcdefghijklmnop1234")
    raise ExceptionGroup("x", [ValueError("y")])


@Tool.define
def trace() -> str:
    """The trace."""
    return current_call_context().traceparent


@Tool.define
def slow(seconds: float) -> str:
    """Take a while."""
    time.sleep(seconds)
    trace()
    done.append("slow")
    return "slept"


@Tool.define
def ended() -> list[str]:
    """What slow calls have come to their end."""
    return done


@Tool.define
def wish() -> str:
    """Ask the user."""
    return ask_user("Which colour?")


@Skill.define
def summary(text: str) -> str:
    """Summarize {text}."""
    raise NotHandled


class Desk(Agent):
    """A desk."""

    @Skill.define
    def ask(self, question: str) -> str:
        """Answer: {question}"""
        raise NotHandled


desk = Desk()
done: list[str] = []
rules = RiskPolicy(allow=Risk.SOFT_WRITE)


def _answer(**request):
    said = [m["content"] for m in request["messages"] if m["role"] == "user"]
    last = request["messages"][-1]
    if "Order" in said[-1] and last["role"] != "tool":
        return calls("order", item="bolt")
    if "break" in said[-1]:
        raise RuntimeError("the key of this server is sk-abcdefghijklmnop1234")
    return says(f"{len(said)} questions so far; last: {last['content']}")


model = {completion: _answer}
