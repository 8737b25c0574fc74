"""Usage that every checker must reject, on the lines that end in `# error`. Nothing here is imported or run."""

from typing import assert_type

from effectful_agents import Agent, NotHandled, Risk, Skill, Tool, acall, handler, propagate, run, steps, stream
from effectful_agents.testing import Evaluation, evaluate


@Tool.define(risk=Risk.READ)
def weather(city: str) -> str:
    """The weather in a city."""
    return "sunny"


@Skill.define
def add(left: int, right: int = 0) -> int:
    """Add {left} and {right}."""
    raise NotHandled


class Bot(Agent):
    @Skill.define
    def send(self, text: str) -> str:
        """Answer {text}."""
        raise NotHandled


def arguments(bot: Bot) -> None:
    add()  # error
    add("1")  # error
    add(1, 2, 3)  # error
    add(1, wrong=2)  # error
    weather(1)  # error
    bot.send()  # error
    bot.send(1)  # error
    bot.send("hello", "again")  # error
    Bot.send("hello")  # error


def results(bot: Bot) -> None:
    text: str = add(1)  # error
    number: int = bot.send("hello")  # error
    assert_type(weather("Oslo"), bytes)  # error
    print(text, number)


async def asynchronous(bot: Bot) -> None:
    await acall(add, "1")  # error
    await acall(bot.send)  # error
    text: str = await acall(add, 1)  # error
    print(text)


def runs() -> None:
    text: str = run(add, 1).value  # error
    print(text)


def evaluations() -> None:
    evaluate(add, [1], concurency=2)  # error: mypy pyright
    evaluate(add, [1], repeat="2")  # error
    number: int = evaluate(add, [1])  # error
    texts: Evaluation[str] = evaluate(add, [1])  # error
    print(number, texts)


def options() -> None:
    Tool.define(weather, risk="harmless")  # error
    Skill.define(temperature=0.5)  # error
    handler(5)  # error


def follows() -> None:
    steps(add, "1")  # error
    steps(add)  # error
    steps(add, 1).value.upper()  # error
    stream(add, 1).value.upper()  # error
    propagate(add)("1")  # error
