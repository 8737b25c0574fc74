"""What an evaluation says of itself: summaries, tables, files."""

from __future__ import annotations

import dataclasses
import datetime
import io
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from effectful_agents import handler
from effectful_agents.errors import StorageError, Suspended
from effectful_agents.messages import Usage
from effectful_agents.operations.loop import completion
from effectful_agents.operations.prices import cost_of
from effectful_agents.operations.world import now
from effectful_agents.testing import Case, Evaluation, compare, evaluate, says
from effectful_agents.testing.evaluation import Failure, Row, exact


def shout(text: str) -> str:
    if text == "c":
        raise ValueError("no\nc")
    if text == "d":
        raise Suspended("to be approved")
    return text.upper()


def loud(output: str) -> float:
    if output == "B":
        raise RuntimeError("deaf")
    return 0.25


CASES = [("a", "A"), ("b", "X"), ("c", "C"), Case("d")]

TABLE = """\
shout: 4 cases, 1 failed, 1 suspended

score  mean  ± error  cases
-----  ----  -------  -----
exact  0.5   0.5      2
loud   0.25           1

case  output                        exact  loud
----  ----------------------------  -----  ----
b     B ! loud: RuntimeError: deaf  no
c     ! ValueError: no c
d     ! Suspended: to be approved
a     A                             yes    0.25"""


def test_printed_it_is_a_table_with_failures_first() -> None:
    assert str(evaluate(shout, CASES, [exact, loud])) == TABLE


def test_the_same_evaluation_gives_the_same_table() -> None:
    def slow(text: str) -> str:
        for _ in range(random.randrange(1000)):
            pass
        return shout(text)

    tables = {str(evaluate(slow, CASES, [exact, loud], repeat=2, name="n")) for _ in range(5)}
    assert len(tables) == 1


def test_tokens_and_cost_stand_above_the_table() -> None:
    def ask(text: str) -> None:
        completion(messages=[{"role": "user", "content": text}], model="m")

    reply = says("x", usage=Usage(input=1500, output=1))
    with handler({completion: lambda **request: reply, cost_of: lambda model, usage: 0.5 if model == "m" else None}):
        result = evaluate(ask, ["a", "b"])
    assert str(result).startswith("ask: 2 cases, 3,002 tokens, $1.0000\n")
    assert (result.usage, result.cost) == (Usage(input=3000, output=2), 1.0)


def test_a_long_table_is_cut_and_a_long_output_too() -> None:
    text = str(evaluate(lambda number: "x" * 100, range(70)))
    assert "… 20 more" in text
    assert max(map(len, text.splitlines())) < 80


def test_what_steers_a_terminal_is_not_printed() -> None:
    assert "\x1b" not in str(evaluate(lambda text: "\x1b[31mred", [Case("a", name="\x1b[2J")]))


class Unprintable:
    def __repr__(self) -> str:
        raise ValueError("no repr")


def test_an_output_without_a_repr_is_shown_and_written_all_the_same(tmp_path: Path) -> None:
    result = evaluate(lambda text: Unprintable(), ["a"])
    assert "its repr raises ValueError" in str(result)
    result.write(tmp_path / "e.jsonl")
    assert "Unprintable, whose repr raises ValueError" in (tmp_path / "e.jsonl").read_text()


def test_on_a_terminal_it_is_drawn() -> None:
    out = io.StringIO()
    with handler({now: lambda: 0.0}):
        Console(file=out, width=100, force_terminal=True).print(evaluate(shout, [*CASES, "[red]"], [exact, loud]))
    drawn = out.getvalue()
    assert "\x1b[31m" in drawn
    assert "[RED]" in drawn
    assert "0.0 s in all calls" in drawn


def test_it_can_be_looked_at_row_by_row() -> None:
    result = evaluate(shout, CASES, [exact, loud])
    assert [row.case.name for row in result] == list("abcd")
    assert [row.case.name for row in result.failures] == list("bcd")
    assert result.rows[2].error == result.rows[2].failures[0]
    assert result.summary()["exact"].mean == 0.5


# Files


@dataclasses.dataclass
class Trip:
    city: str
    day: datetime.date


ROME = Trip("Rome", datetime.date(2026, 5, 1))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    cases = [Case(ROME, expected=ROME, metadata={"hard": True}, name="é"), Case(ROME, days=0)]

    def plan(trip: Trip, days: int = 1) -> Trip:
        days = 1 // days
        return trip

    with handler({now: lambda: 0.0}):
        result = evaluate(plan, cases, exact)
    result.write(path)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rome = {"city": "Rome", "day": "2026-05-01"}
    assert (lines[0]["args"], lines[0]["output"], lines[0]["scores"]) == ([rome], rome, {"exact": True})
    read = Evaluation.read(path, Trip)
    assert [row.output for row in read] == [ROME, None]
    assert str(read) == str(result)
    assert [row.failures for row in read] == [row.failures for row in result]
    assert Evaluation.read(path).rows[0].output == rome


def test_what_has_no_json_is_written_as_its_repr(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    evaluate(lambda text: object(), [Case(object(), name="a")]).write(path)
    (line,) = [json.loads(line) for line in path.read_text().splitlines()]
    assert line["output"] == line["args"][0] == {"$repr": "<object object>"}
    assert Evaluation.read(path, Trip).rows[0].output == {"$repr": "<object object>"}


def test_conversations_are_written_when_they_are_asked_for(tmp_path: Path) -> None:
    row = Row(Case("a"), "b", messages=({"role": "user", "content": "a"},))
    Evaluation("n", [row]).write(tmp_path / "with.jsonl", messages=True)
    Evaluation("n", [row]).write(tmp_path / "without.jsonl")
    assert Evaluation.read(tmp_path / "with.jsonl").rows[0].messages == row.messages
    assert Evaluation.read(tmp_path / "without.jsonl").rows[0].messages == ()


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"evaluation": "n", "case": 1}'])
def test_a_line_that_is_no_row_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    Evaluation("n", [Row(Case("a"), "b")]).write(path)
    with path.open("a") as file:
        file.write(line)
    with pytest.raises(StorageError, match=r"line 2 of e\.jsonl"):
        Evaluation.read(path)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        Evaluation.read(tmp_path / "none.jsonl")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=5,
)
texts = st.text(st.characters(codec="utf-8"), max_size=8)
counts = st.none() | st.integers(0, 10**9)
rows = st.builds(
    Row,
    st.builds(
        lambda args, name, more: Case(*args, name=name, **more).named(name),
        st.lists(json_values, max_size=2),
        texts,
        st.fixed_dictionaries({}, optional={"expected": json_values}),
    ),
    json_values,
    st.dictionaries(texts, st.booleans() | st.floats(-1e300, 1e300), max_size=3),
    st.dictionaries(texts, texts, max_size=2),
    st.lists(st.builds(Failure, texts, texts, texts, texts), max_size=2).map(tuple),
    st.integers(1, 5),
    st.floats(0, 1e6),
    st.builds(Usage, counts, counts, counts, counts, counts, st.booleans()),
    st.none() | st.floats(0, 10),
)


@settings(max_examples=40)
@given(st.lists(rows, min_size=1, max_size=4))
def test_every_row_that_is_written_is_read(tmp_path_factory: Any, given_rows: list[Row[Any]]) -> None:
    path = tmp_path_factory.mktemp("rows") / "e.jsonl"
    Evaluation("n", given_rows).write(path)
    assert Evaluation.read(path) == Evaluation("n", given_rows)


def test_half_a_surrogate_pair_is_written_and_read(tmp_path: Path) -> None:
    path, half = tmp_path / "e.jsonl", "caf\ud83d"
    row = Row(Case("a", name=half), "b", {half: 1.0}, {"n": half}, (Failure(half, half, half),))
    Evaluation(half, [row]).write(path)
    assert Evaluation.read(path) == Evaluation(half, [row])


def test_what_was_in_a_file_stays_until_all_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text("yesterday")
    path.chmod(0o640)
    broken = Evaluation("n", [Row(Case("a"), scores={"s": object()})])  # ty: ignore
    with pytest.raises(TypeError):
        broken.write(path)

    def full(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:3])
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="no space left"):
            evaluate(shout, CASES).write(path)
    assert (path.read_text(), list(tmp_path.iterdir())) == ("yesterday", [path])
    link = tmp_path / "link"
    link.symlink_to(path)
    evaluate(shout, CASES).write(link)
    assert link.is_symlink()
    assert (len(Evaluation.read(path)), path.stat().st_mode & 0o777) == (4, 0o640)


@pytest.mark.parametrize(
    ("field", "value"),
    [("scores", {"s": float("nan")}), ("scores", {"s": float("inf")}), ("scores", {"s": "1"}), ("scores", {"s": None}),
     ("scores", [1]), ("notes", {"n": 1}), ("scores", {"s": 10**400}), ("scores", {"s": 1e301}), ("seconds", "1"),
     ("cost", float("nan"))],
    ids=["nan", "inf", "text", "null", "list", "note", "large", "larger", "seconds", "cost"],
)  # fmt: skip
def test_a_file_with_what_is_no_score_is_refused(field: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    Evaluation("n", [Row(Case("a"), "b", {"s": 1.0})]).write(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(StorageError, match=r"line 1 of e\.jsonl is no row"):
        Evaluation.read(path)


def test_a_suspension_is_one_after_reading_too(tmp_path: Path) -> None:
    evaluate(shout, CASES).write(tmp_path / "e.jsonl")
    assert [row.suspended for row in Evaluation.read(tmp_path / "e.jsonl")] == [False, False, False, True]


def test_large_scores_have_a_mean_and_larger_ones_are_refused() -> None:
    result = evaluate(lambda x: x, range(8), {"s": lambda output: 1e200 * output, "t": lambda output: 1e307}, repeat=2)
    summary = result.summary()["s"]
    assert (summary.mean, summary.error, summary.spread) == (3.5e200, pytest.approx(0.866e200, rel=1e-3), 0.0)
    assert "3.5e+200" in str(result)
    assert [failure.message.split(";")[0] for failure in result.rows[0].failures] == ["it returned 1e+307"]
    assert compare(result, result).scores["s"].difference == 0.0


# What it loads


def test_it_loads_nothing_slow_and_threads_end_with_the_program() -> None:
    code = (
        "import sys\nfrom effectful_agents.testing import evaluate\n"
        "print(evaluate(lambda x: x, range(20)).name, "
        "*(name for name in ('asyncio', 'rich', 'scipy', 'numpy', 'litellm') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("<lambda>\n", "")
