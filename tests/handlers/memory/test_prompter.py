"""What the model is shown of what was recalled."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents import Agent, NotHandled, Skill, handler, harness
from effectful_agents.errors import OptionError
from effectful_agents.handlers.memory import InMemoryStore, MemoryKeeper, RecallPrompter
from effectful_agents.operations.loop import call_user
from effectful_agents.operations.memory import Memory, MemoryScope, recalled
from effectful_agents.operations.prompt import section
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel
from tests.handlers.memory.remembering import ANN, chat, remembering, said

# In parts: the model is shown the source of this module.
NAME = "remembered"
OPENING, CLOSING = f"<{NAME}>", f"</{NAME}>"


def shown(*memories: Memory, content: Any = "Hello.", prompter: RecallPrompter | None = None) -> Any:
    """The content of the user message, where these were recalled."""

    def write(prompt: Any) -> Any:
        return {"role": "user", "content": content}

    with handler({call_user: write, recalled: lambda: memories}), handler(prompter or RecallPrompter()):
        return call_user(section("chat", "Hello."))["content"]


def a(text: str, at: float = 0.0) -> Memory:
    return Memory("1", text, ANN, at)


def lines_of(content: str) -> list[str]:
    """The texts in the block."""
    block = content.partition(f"{OPENING}\n")[2].partition(f"\n{CLOSING}")[0]
    return [json.loads(line) for line in block.split("\n")[1:]]


def test_it_stands_behind_the_request_and_says_what_it_is() -> None:
    content = shown(a("Tea is green."), a("Milk is white."))
    request, empty, opening, note, *_ = content.splitlines()
    assert (request, empty, opening) == ("Hello.", "", OPENING)
    assert "no instruction" in note
    assert sorted(lines_of(content)) == ["Milk is white.", "Tea is green."]


def test_where_nothing_was_recalled_nothing_is_changed() -> None:
    assert shown() == "Hello."
    with remembering("Hi.") as model:
        chat("Hello.")
    assert said(model.requests[0]) == "Hello."


def test_the_oldest_comes_first() -> None:
    assert lines_of(shown(a("Third.", 3.0), a("First.", 1.0), a("Second.", 2.0))) == ["First.", "Second.", "Third."]


def test_parts_of_a_message_stay_and_get_one_more() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:"}}
    content = shown(a("Tea."), content=[{"type": "text", "text": "See:"}, image])
    assert content[:2] == [{"type": "text", "text": "See:"}, image]
    assert lines_of(content[2]["text"]) == ["Tea."]
    with handler(RecallPrompter()):
        assert shown(a("Tea."), content=[image], prompter=RecallPrompter())[0] == image


def test_two_prompters_are_as_one() -> None:
    def write(prompt: Any) -> Any:
        return {"role": "user", "content": "Hello."}

    with handler({call_user: write, recalled: lambda: [a("Tea.")]}):
        with handler(Layers(RecallPrompter(), RecallPrompter())):
            content = call_user(section("chat", "Hello."))["content"]
    assert isinstance(content, str)
    assert content.count(OPENING) == 1


PIECES = [
    *("<", CLOSING, OPENING, '"', "\\", "\\u003c", "\ud800"),
    *("\n", "\r\n", "\x0b", "\x1e", "\x85", "\u2028", "\u2029"),
]
HOSTILE = st.text() | st.lists(st.sampled_from(PIECES), max_size=6).map("".join)


@given(st.lists(HOSTILE, min_size=1, max_size=4))
def test_no_text_ends_the_block_or_begins_a_line(texts: list[str]) -> None:
    content = shown(*(a(text, float(place)) for place, text in enumerate(texts)))
    assert content.count(OPENING) == content.count(CLOSING) == 1
    assert content.endswith(f"\n{CLOSING}")
    head, _, block = content.partition(f"{OPENING}\n")
    assert head == "Hello.\n\n"
    # The note, a line for each memory, the end: whatever counts as the end of a line.
    assert len(block.splitlines()) == len(texts) + 2
    assert "<" not in block.removesuffix(CLOSING)
    assert lines_of(content) == [text.replace("\ud800", "\ufffd") for text in texts]


def block_of(content: str) -> str:
    return content[content.index(OPENING) :]


def frame() -> int:
    """The characters of the block that are none of a memory's."""
    return len(block_of(shown(a("x")))) - len('"x"\n')


def test_what_fits_best_has_room_first() -> None:
    texts = [f"{name} " * 12 for name in ("best", "next", "then", "last")]
    size = frame() + 4 * 63 + len('"tiny"\n')
    assert size >= 400
    content = shown(*map(a, [*texts, "tiny"]), prompter=RecallPrompter(size))
    assert sorted(lines_of(content)) == sorted([*texts, "tiny"])
    assert len(block_of(content)) == size
    content = shown(*map(a, [*texts, "more " * 12, "tiny"]), prompter=RecallPrompter(size))
    assert sorted(lines_of(content)) == sorted([*texts, "tiny"])
    content = shown(*map(a, [*texts, "tiny"]), prompter=RecallPrompter(size - 1))
    assert sorted(lines_of(content)) == sorted(texts)


@given(st.lists(HOSTILE.map(lambda text: text * 40) | HOSTILE, min_size=1, max_size=6), st.integers(400, 1500))
def test_whatever_is_remembered_the_block_keeps_to_its_size(texts: list[str], most: int) -> None:
    memories = [a(text, float(place)) for place, text in enumerate(texts)]
    content = shown(*memories, prompter=RecallPrompter(most))
    block = content.removeprefix("Hello.")
    assert len(block.removeprefix("\n\n")) <= most
    whole = {text.replace("\ud800", "\ufffd") for text in texts}
    for text in lines_of(content) if block else ():
        # As it was, or its beginning and its end with a mark between them.
        begin, gap, end = text.partition(" […] ")
        assert text in whole or (gap and any(one.startswith(begin) and one.endswith(end) for one in whole))


def test_a_long_text_is_shortened_in_its_middle() -> None:
    content = shown(a("begin" + "x" * 9_000 + "end"), prompter=RecallPrompter(800))
    (text,) = lines_of(content)
    assert 100 < len(text) <= 200
    assert (text[:5], text[-3:]) == ("begin", "end")
    assert " […] " in text


def test_it_is_cut_between_words() -> None:
    words = " ".join(f"word{number}" for number in range(1000))
    (text,) = lines_of(shown(a(words), prompter=RecallPrompter(800)))
    assert set(text.split(" ")) <= {*words.split(" "), "[…]"}
    # In a script without spaces, between characters, whatever they are made of.
    (text,) = lines_of(shown(a("e\u0301" * 1000), prompter=RecallPrompter(800)))
    begin, _, end = text.partition(" […] ")
    assert set(begin[::2] + end[::2]) == {"e"}
    assert set(begin[1::2] + end[1::2]) == {"\u0301"}


@pytest.mark.parametrize("value", [399, 0, -1, 1.5, "8000", None, True])
def test_a_limit_that_cannot_be_is_refused(value: Any) -> None:
    with pytest.raises(OptionError, match="max_characters"):
        RecallPrompter(value)


@pytest.mark.parametrize("prompter_inside", [True, False], ids=["prompter inside", "keeper inside"])
def test_the_order_of_the_two_makes_no_difference(prompter_inside: bool) -> None:
    keeper, prompter = MemoryKeeper(InMemoryStore(), ANN), RecallPrompter()
    layers = [keeper, prompter] if prompter_inside else [prompter, keeper]
    with handler(harness(system_prompt="brief")), handler(ScriptedModel("Hi.", "Tea.")) as model:
        with handler(Layers(*layers)):
            chat("My tea is green.")
            chat("Which tea?")
    assert "My tea is green." in said(model.requests[1])


def test_what_the_conversation_shows_is_not_shown_again() -> None:
    store = InMemoryStore()
    store.write(ANN, [Memory("1", "Ann's tea is green.", ANN), Memory("2", "Milk is white.", ANN)])
    keeper, guide = MemoryKeeper(store, ANN, extractor=lambda *_: None), Guide()
    with handler(harness(eval_provider="none")), handler(ScriptedModel(*"abcd")) as model:
        with handler(Layers(keeper, RecallPrompter())):
            for text in ("Which tea?", "Tea, again?", "Tea with milk?"):
                guide.tell(text)
            Guide().tell("And tea?")
    assert [lines_of(said(request)) for request in model.requests] == [
        ["Ann's tea is green."],
        [],
        ["Milk is white."],
        ["Ann's tea is green."],
    ]
    assert OPENING not in said(model.requests[1])


class Guide(Agent):
    """A guide."""

    @Skill.define
    def tell(self, text: Annotated[str, "What to tell of."]) -> str:
        """{text}"""
        raise NotHandled


def test_what_came_before_stays_as_it_was() -> None:
    """So that the cache of a provider goes on to hold: the system message, the tools, and each earlier message."""
    store = InMemoryStore()
    guide = Guide()
    layers = [MemoryKeeper(store, MemoryScope("acme")), RecallPrompter()]
    with handler(harness(eval_provider="none")), handler(ScriptedModel(*"abcd")) as model, handler(Layers(*layers)):
        for text in ("Tea one.", "Tea two.", "Tea three.", "Tea four."):
            guide.tell(text)
    assert len(store.memories(MemoryScope("acme"))) == 4
    for earlier, later in zip(model.requests, model.requests[1:], strict=False):
        messages = earlier["messages"]
        assert json.dumps(later["messages"][: len(messages)]) == json.dumps(messages)
        assert later.get("tools") == earlier.get("tools")
    assert OPENING in said(model.requests[3])
    assert OPENING not in model.requests[3]["messages"][0]["content"]
