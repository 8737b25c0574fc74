"""The fields of agents that are kept: every type that has a form, and what becomes of those that changed."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import sqlite3
import typing
from collections.abc import Callable
from typing import Any

import pydantic
import pytest
from PIL import Image

from effectful_agents import Agent, NotHandled, Skill, handler, harness
from effectful_agents.encoding import decode
from effectful_agents.errors import StateError
from effectful_agents.handlers.durability import SQLitePersister
from effectful_agents.operations.history import load_state
from effectful_agents.testing import ScriptedModel
from tests.encoding.sameness import same
from tests.encoding.test_table import ROWS
from tests.handlers.durability.keeping import Bot, calls, restored, said, talk


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agents.db"


def agent_with(fields: dict[str, Any], *, name: str = "Sample", **options: Any) -> Any:
    """A class of agents with these fields."""

    def ask(self: Any, question: str) -> str:
        """{question}"""
        raise NotHandled

    made = [(field, tp, dataclasses.field(default=None)) for field, tp in fields.items()]
    names = {"ask": Skill.define(ask), "__agent_id__": "sample"}
    return dataclasses.make_dataclass(name, made, bases=(Agent,), namespace=names, **options)


def kept(path: Any) -> dict[str, str]:
    """The fields in the file, as JSON text."""
    connection = sqlite3.connect(path)
    found = dict(connection.execute("SELECT name, value FROM agent_fields"))
    connection.close()
    return found


class Address(pydantic.BaseModel):
    street: str
    since: datetime.date


@dataclasses.dataclass
class Person:
    name: str
    addresses: list[Address] = dataclasses.field(default_factory=list)
    friends: dict[str, Person] = dataclasses.field(default_factory=dict)


# Every kind of value


def test_whatever_has_a_form_comes_back(path):
    """All rows of the table of types, as fields of one agent."""
    rows = {f"f{number}": row.values[0] for number, row in enumerate(ROWS)}
    made = agent_with({name: row.tp for name, row in rows.items()})
    talk(path, made(**{name: row.value for name, row in rows.items()}).ask, "one")
    agent = restored(path, made())
    for name, row in rows.items():
        found = getattr(agent, name)
        assert same(row.value, found) or same(list(row.value), found), (row.tp, row.value, found)


def test_nested_values_and_pictures_come_back(path):
    made = agent_with({"person": Person, "picture": Image.Image, "seen": set[datetime.datetime], "raw": bytes})
    person = Person("Ann", [Address(street="Main", since=datetime.date(2020, 1, 2))], {"Bob": Person("Bob")})
    picture = Image.new("RGB", (3, 2), (1, 2, 3))
    seen = {datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)}
    talk(path, made(person, picture, seen, b"\x00\xff").ask, "one")
    agent = restored(path, made())
    assert agent.person == person
    assert agent.picture.tobytes() == picture.tobytes()
    assert (agent.seen, agent.raw) == (seen, b"\x00\xff")


def test_a_huge_value_comes_back(path):
    text, numbers = "ü" * 3_000_000, list(range(200_000))
    made = agent_with({"text": str, "numbers": list[int]})
    talk(path, made(text, numbers).ask, "x" * 3_000_000)
    agent = restored(path, made())
    assert (agent.text, agent.numbers) == (text, numbers)
    assert len(said(agent.__history__)[0]) == 3_000_000


def test_a_function_that_a_model_wrote_comes_back_where_code_is_run(path):
    made = agent_with({"rule": Callable[[int], int]})
    code = "def double(n: int) -> int:\n    return 2 * n"
    agent = made()
    with handler(harness(persist_db=path, type_checker="none")), handler(ScriptedModel("one")):
        agent.rule = decode('{"code": "' + code.replace("\n", "\\n") + '"}', Callable[[int], int])
        agent.ask("?")
    other = made()
    with handler(harness(persist_db=path, type_checker="none")), handler(ScriptedModel("two")):
        other.ask("?")
        assert other.rule(21) == 42
    with pytest.raises(StateError, match=r"the field `rule`.* install an executor"):
        talk(path, made().ask, "three")


def test_a_field_without_a_value_is_left_out(path):
    @dataclasses.dataclass
    class Lazy(Agent):
        __agent_id__: str = "lazy"
        found: str = dataclasses.field(init=False)

        @Skill.define
        def ask(self, question: str) -> str:
            """{question}"""
            raise NotHandled

    lazy = Lazy()
    talk(path, lazy.ask, "one")
    assert kept(path) == {}
    lazy.found = "it"
    talk(path, lazy.ask, "two")
    assert restored(path, Lazy()).found == "it"


def test_class_variables_and_what_is_not_declared_are_no_fields(path):
    @dataclasses.dataclass
    class Busy(Agent):
        __agent_id__: str = "busy"
        count: typing.ClassVar[int] = 0
        times: dataclasses.InitVar[int] = 3
        client: Any = dataclasses.field(default=None, metadata={"persist": False})

        @Skill.define
        def ask(self, question: str) -> str:
            """{question}"""
            raise NotHandled

    busy: Any = Busy(client=object())
    busy.aside = object()
    talk(path, busy.ask, "one")
    assert kept(path) == {}


def test_an_agent_in_a_field_is_not_written(path):
    @dataclasses.dataclass
    class Team(Agent):
        __agent_id__: str = "team"
        writer: Bot = dataclasses.field(default_factory=lambda: Bot(None, ["secret"]))
        others: list[Bot] = dataclasses.field(default_factory=list)
        anything: Any = None

        @Skill.define
        def ask(self, question: str) -> str:
            """{question}"""
            raise NotHandled

    team = Team(anything=Bot(None, ["secret"]))
    writer = team.writer
    talk(path, team.ask, "one", "two")
    assert team.writer is writer
    assert kept(path) == {}


def test_a_field_of_a_class_in_a_function_comes_back(path):
    @dataclasses.dataclass
    class Point:
        x: int

    made = agent_with({"points": list[Point]})
    talk(path, made([Point(1)]).ask, "one")
    assert restored(path, made()).points == [Point(1)]


def test_a_factory_of_lists_is_not_shared_with_what_is_kept(path):
    bot = Bot()
    talk(path, bot.ask, calls("note", text="a"), "one")
    notes = bot.notes
    talk(path, bot.ask, calls("note", text="b"), "two")
    assert bot.notes is notes  # nobody else has changed it, so it is the same object
    assert restored(path).notes == ["a", "b"]


# What cannot be kept says so, by name, before the model is asked


def test_a_type_without_a_form_is_told_before_anything_is_asked(path):
    made = agent_with({"thread": collections.abc.Iterator[int]})
    model = ScriptedModel("one")
    with pytest.raises(StateError, match=r"the field `thread` of `Sample` .*persist.*False") as caught:
        with handler(model), handler(harness(persist_db=path, system_prompt="brief")):
            made().ask("?")
    assert (caught.value.agent_id, caught.value.field) == ("sample", "thread")
    assert model.remaining == 1


def test_a_value_that_is_not_what_its_annotation_says_is_told_before_it_is_written(path):
    made = agent_with({"count": int, "name": str})
    talk(path, made(1, "a").ask, "one")
    before = kept(path)
    agent = restored(path, made())
    agent.count = "many"
    with pytest.raises(StateError, match="`count`"):
        talk(path, agent.ask, "two")
    assert kept(path) == before


def test_a_value_that_breaks_a_constraint_is_told_before_it_is_written(path):
    made = agent_with({"count": typing.Annotated[int, pydantic.Field(ge=0)]})
    agent = made(1)
    talk(path, agent.ask, "one")
    agent.count = -1
    with pytest.raises(StateError, match=r"`count` of `Sample`.*greater than or equal to 0"):
        talk(path, agent.ask, "two")
    assert restored(path, made()).count == 1


def test_a_value_that_cannot_be_written_is_not_replaced_by_that_of_somebody_else(path):
    """Whoever set it here is told, and not surprised."""
    made = agent_with({"count": int})
    agent, other = made(1), made()
    talk(path, agent.ask, "one")
    talk(path, other.ask, "two")
    other.count, agent.count = 2, object()
    talk(path, other.ask, "three")
    with pytest.raises(StateError, match="`count`"):
        talk(path, agent.ask, "four")
    assert said(agent.__history__) == ["one", "two", "three"]


def test_decoding_a_field_may_do_anything_with_the_agent(path):
    """A validator of the program's asks for the agent that is being restored."""
    agents = []

    def look(text: str) -> str:
        if agents:
            load_state(agents.pop())
        return text

    made = agent_with({"name": typing.Annotated[str, pydantic.AfterValidator(look)]})
    talk(path, made("Ann").ask, "one")
    agent = made()
    agents.append(agent)
    talk(path, agent.ask, "two")
    assert (agent.name, said(agent.__history__)) == ("Ann", ["one", "two"])


def test_an_annotation_that_names_nothing_is_told(path):
    @dataclasses.dataclass
    class Wrong(Agent):
        __agent_id__: str = "wrong"
        what: Nothing = None  # noqa: F821  # ty: ignore

        @Skill.define
        def ask(self, question: str) -> str:
            """{question}"""
            raise NotHandled

    with pytest.raises(StateError, match="an annotation names `Nothing`"):
        talk(path, Wrong().ask, "one")


# Classes that changed


def test_a_type_that_changed_is_told_and_loses_nothing(path):
    talk(path, agent_with({"age": str, "name": str})("old", "Ann").ask, "one")
    before = kept(path)
    made = agent_with({"age": int, "name": str})
    agent = made(7, "Bob")
    with pytest.raises(StateError) as caught:
        talk(path, agent.ask, "two")
    assert (caught.value.agent_id, caught.value.field) == ("sample", "age")
    for part in ("`age`", "`sample`", "`int`", "`Sample`", "forget('sample', 'age')"):
        assert part in str(caught.value)
    assert kept(path) == before
    assert (agent.age, agent.name, agent.__history__) == (7, "Bob", [])
    assert said(restored(path, agent_with({"name": str})()).__history__) == ["one"]


def test_what_the_error_advises_helps(path):
    talk(path, agent_with({"age": str})("old").ask, "one")
    made = agent_with({"age": int})
    assert SQLitePersister(path).forget("sample", "age")
    agent = made(7)
    talk(path, agent.ask, "two")
    assert restored(path, made()).age == 7
    assert said(agent.__history__) == ["one", "two"]


def test_a_field_that_was_removed_stays_in_the_file_and_one_that_is_new_has_its_default(path):
    talk(path, agent_with({"old": str})("kept").ask, "one")
    made = agent_with({"new": str})
    talk(path, made("fresh").ask, "two")
    assert kept(path) == {"old": '"kept"', "new": '"fresh"'}
    both = restored(path, agent_with({"old": str, "new": str})())
    assert (both.old, both.new) == ("kept", "fresh")


def test_a_type_that_was_widened_goes_on(path):
    talk(path, agent_with({"age": int})(7).ask, "one")
    made = agent_with({"age": int | str})
    agent = made()
    talk(path, agent.ask, "two")
    agent.age = "eight"
    talk(path, agent.ask, "three")
    assert restored(path, made()).age == "eight"


def test_a_part_of_a_field_that_is_new_gets_its_default(path):
    @dataclasses.dataclass
    class Plan:
        steps: list[str]

    talk(path, agent_with({"plan": Plan})(Plan(["a"])).ask, "one")

    @dataclasses.dataclass
    class LaterPlan:
        steps: list[str]
        done: int = 0

    made = agent_with({"plan": LaterPlan})
    mine, others = made(), made()
    talk(path, mine.ask, "two")
    talk(path, others.ask, "three")
    others.plan.done = 1
    talk(path, others.ask, "four")
    talk(path, mine.ask, "five")
    assert mine.plan == LaterPlan(["a"], 1)
