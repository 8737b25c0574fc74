"""Usage as users write it; every checker must infer what `assert_type` says, and report nothing.

Nothing here is called. The definitions run when the file is collected, so what is typed here also works.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, assert_type

from effectful_agents import (
    Agent,
    NotHandled,
    Risk,
    Skill,
    Tool,
    acall,
    handler,
    harness,
    propagate,
    run,
    steps,
    stream,
    usage,
)
from effectful_agents.handlers.delegation import Delegate
from effectful_agents.handlers.durability import Journal
from effectful_agents.handlers.loop import FollowedCall
from effectful_agents.handlers.memory import InMemoryStore, MemoryKeeper, SqliteMemoryStore, WorkingWindow
from effectful_agents.handlers.observability import UsageMeter
from effectful_agents.handlers.policy import AgentHost, HumanInteraction, MemoryLedger, ask_user
from effectful_agents.messages import StreamEvent
from effectful_agents.operations.approvals import ConsumptionLedger
from effectful_agents.operations.memory import (
    Memory,
    MemoryScope,
    MemoryStore,
    consolidate_memory,
    flush_memory,
    forget,
    recall,
    remember,
)
from effectful_agents.operations.policy import Answer
from effectful_agents.operations.steps import StepEvent
from effectful_agents.testing import Case, Evaluation, aevaluate, compare, evaluate
from effectful_agents.testing.evaluation import contains, exact


@dataclasses.dataclass
class Kept(Agent):
    __agent_id__: str
    notes: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Joke:
    setup: str
    punchline: str


@Tool.define
def cities() -> list[str]:
    """The cities that there are."""
    return ["Barcelona"]


@Tool.define(risk=Risk.HARD_WRITE, name="book_flight", timeout=30)
def book(city: str, seats: int = 1) -> bool:
    """Book a flight to a city."""
    return bool(city and seats)


@Tool.define
async def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


@Skill.define
def joke(theme: str) -> Joke:
    """Tell a joke about {theme}."""
    raise NotHandled


@Skill.define(recursive=True, prompt="shorten")
def halve(text: str, *, rounds: int = 1) -> str:
    """Shorten {text} to half its length, {rounds} times."""
    raise NotHandled


@Skill.define
def pick[T](options: Sequence[T]) -> T:
    """Pick the best of {options}."""
    raise NotHandled


@Skill.define
def key(field: str) -> Callable[[Joke], int]:
    """Write a function by which to sort jokes by their {field}."""
    raise NotHandled


def functions() -> None:
    assert_type(cities(), list[str])
    assert_type(book("Barcelona", seats=2), bool)
    assert_type(joke("cats"), Joke)
    assert_type(halve("a long text", rounds=2), str)
    assert_type(key("setup")(joke("cats")), int)


to_halve = Delegate(halve, name="to_halve", depth=2, grants=["model_call"])


@Tool.define(external=True)
def browse(url: str) -> Joke:
    """Open a page."""
    raise NotHandled


def delegated() -> None:
    assert_type(to_halve("a long text"), str)
    assert_type(Delegate(joke)("cats"), Joke)
    assert_type(browse("https://example.org"), Joke)


def generic() -> None:
    assert_type(pick([1, 2]), int)
    assert_type(pick(["a", "b"]), str)


async def asynchronous() -> None:
    assert_type(await weather("Barcelona"), str)
    assert_type(await acall(weather, "Barcelona"), str)
    assert_type(await acall(joke, "cats"), Joke)
    assert_type(await acall(joke, theme="cats"), Joke)


def followed() -> None:
    call = steps(joke, theme="cats")
    for step in call:
        assert_type(step, StepEvent)
    assert_type(call.value, Joke)
    assert_type(steps(weather, "Oslo").value, str)
    pieces = stream(weather, "Oslo", partial=True)
    for event in pieces:
        assert_type(event, StreamEvent)
    assert_type(pieces.value, str)
    assert_type(stream(joke, "cats").value, Joke)
    assert_type(propagate(joke)("cats"), Joke)


async def followed_asynchronously() -> None:
    async with steps(joke, "cats") as call:
        async for step in call:
            assert_type(step, StepEvent)
    assert_type(call.value, Joke)


class Bot(Agent):
    def __init__(self, tone: str) -> None:
        self.tone = tone

    @Skill.define
    def send(self, text: str) -> str:
        """Answer {text} in the tone {self.tone}."""
        raise NotHandled

    @Skill.define
    def rate(self, text: str, *, best: int = 5) -> int:
        """Rate {text} from 1 to {best}."""
        raise NotHandled

    @Tool.define
    def now(self) -> float:
        """The time of day, in hours."""
        return 12.0

    @Tool.define(risk=Risk.SOFT_WRITE)
    def note(self, text: str) -> None:
        """Write a note."""

    @staticmethod
    @Skill.define
    def translate(text: str, language: str) -> str:
        """Translate {text} to {language}."""
        raise NotHandled


class PoliteBot(Bot):
    def both(self, text: str) -> tuple[str, int]:
        return super().send(text), self.rate(text)


class Plain:
    """An agent without the base class: checkers see the same."""

    @Skill.define
    def send(self, text: str) -> str:
        """Answer {text}."""
        raise NotHandled


def methods(bot: Bot, polite: PoliteBot, plain: Plain) -> None:
    assert_type(bot.send("hello"), str)
    assert_type(bot.rate("hello", best=10), int)
    assert_type(bot.now(), float)
    assert_type(bot.note("hello"), None)
    assert_type(Bot.send(bot, "hello"), str)
    assert_type(Bot.translate("hello", language="French"), str)
    assert_type(polite.send("hello"), str)
    assert_type(polite.both("hello"), tuple[str, int])
    assert_type(plain.send("hello"), str)
    assert_type(Kept("bot").__agent_id__, str)


async def methods_asynchronous(bot: Bot) -> None:
    assert_type(await acall(bot.send, "hello"), str)
    assert_type(await acall(bot.rate, "hello", best=3), int)


def runs(bot: Bot) -> None:
    result = run(joke, "cats")
    assert_type(result.value, Joke)
    assert_type(run(joke, "cats", history=result.messages).value, Joke)
    assert_type(run(bot.rate, "hello").value, int)


def handlers() -> None:
    with handler(harness(model="gpt-5-mini", num_retries=3)):
        assert_type(joke("cats"), Joke)
    with handler({joke: lambda theme: Joke(theme, "?")}):
        assert_type(joke("cats"), Joke)


async def programs() -> None:
    @handler(harness())
    def program(theme: str) -> Joke:
        return joke(theme)

    @handler(harness())
    async def program_asynchronous(theme: str) -> Joke:
        return await acall(joke, theme)

    assert_type(program("cats"), Joke)
    assert_type(await program_asynchronous("cats"), Joke)


def first_class() -> None:
    def apply(function: Callable[[str], Joke], theme: str) -> Joke:
        return function(theme)

    assert_type(apply(joke, "cats"), Joke)
    tools: list[Tool[..., Any]] = [cities, book]
    assert_type(tools[0].risk, Risk)


def approvals() -> None:
    def compose(scope: str, resources: object) -> Callable[[str], Joke]:
        return joke

    def scope_of(claims: dict[str, str]) -> str | None:
        return claims.get("sub")

    host = AgentHost(
        compose,
        HumanInteraction(b"0" * 32, consumption="runs.db"),
        scope_for_claims=scope_of,
        journal=lambda run_id: Journal(run_id, "runs.db"),
        stack=harness(model="gpt-5-mini"),
    )
    outcome = host.start({"sub": "ann"}, "cats")
    assert_type(outcome.value, Joke | None)
    assert_type(host.redeem(outcome.token, {"sub": "ann"}, Answer(approved=True)).suspended, bool)
    assert_type(HumanInteraction(b"0" * 32, consumption=MemoryLedger(), binding="ann").ledger, ConsumptionLedger)
    assert_type(ask_user("When?"), str)


@Skill.define(tools=False)
def facts(request: str, answer: str) -> list[str]:
    """Facts of {request} {answer}."""
    raise NotHandled


def embed(texts: Sequence[str]) -> list[list[float]]:
    return [[float(len(text))] for text in texts]


async def embed_later(texts: Sequence[str]) -> list[list[float]]:
    return embed(texts)


def use_memory() -> None:
    scope = MemoryScope("acme", user="ann")
    stores: list[MemoryStore] = [
        InMemoryStore(),
        SqliteMemoryStore("a.db", embed),
        SqliteMemoryStore("b.db", embed_later),
    ]
    keeper = MemoryKeeper(
        stores[0], scope, extractor=facts, consolidator=lambda texts: texts[:1], working_window=WorkingWindow(3)
    )
    with handler(keeper):
        assert_type(remember("Tea.", tags=["drink"], metadata={"n": 1}), Memory)
        assert_type(recall("tea", 3, kind="fact"), Sequence[Memory])
        assert_type(consolidate_memory(), Sequence[Memory])
        assert_type(flush_memory(), int)
        assert_type(forget("1", before=2.0), int)


def evaluated(bot: Bot) -> None:
    cases = [Case("cats", expected="a joke"), ("dogs", "another"), {"input": "birds"}, "fish"]
    result = evaluate(joke, cases, contains, stack=lambda: harness(model="m"), repeat=2)
    assert_type(result, Evaluation[Joke])
    for row in result:
        assert_type(row.output, Joke | None)
        assert_type(row.cost, float | None)
    assert_type(evaluate(weather, ["Oslo"], [exact, len_of]), Evaluation[str])
    assert_type(evaluate(bot.send, "cases.jsonl", {"right": exact, "judge": halve}), Evaluation[str])
    assert_type(evaluate(streamed, ["Oslo"]), Evaluation[str])
    assert_type(evaluate(pieces, ["Oslo"], limit=1), Evaluation[list[int]])
    assert_type(compare(result, result).scores["contains"].p, float)
    assert_type(Evaluation.read("rows.jsonl", Joke), Evaluation[Joke])
    assert_type(Evaluation.read("rows.jsonl"), Evaluation[Any])


def counted() -> None:
    with usage() as used:
        assert_type(used, UsageMeter)
        assert_type(used.cost, float | None)


async def evaluated_asynchronously() -> None:
    assert_type(await aevaluate(weather, ["Oslo"], exact, concurrency=2), Evaluation[str])
    assert_type(await aevaluate(joke, ["cats"]), Evaluation[Joke])


def len_of(output: str) -> float:
    return len(output)


def pieces(text: str) -> Iterator[int]:
    yield len(text)


def streamed(text: str) -> FollowedCall[StreamEvent, str]:
    return stream(weather, text)
