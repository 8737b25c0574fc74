"""What every ledger of questions promises, as tests that run on any of them.

The class is for pytest, which this module needs, as `effectful_agents.testing` does not. A class derived from it says
how a ledger is opened, and has all its tests:

    from effectful_agents.testing.ledgers import LedgerContract

    class TestMyLedger(LedgerContract):
        def open_ledger(self, folder):
            return MyLedger(folder / "approvals")
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import threading
from pathlib import Path
from typing import Any

import pytest

from effectful_agents.errors import QuestionChanged, TokenError, TokenExpired, TokenUnknown, TokenUsed
from effectful_agents.operations.approvals import ConsumptionLedger, PendingQuestion, QuestionState
from effectful_agents.operations.policy import Answer
from effectful_agents.testing.stores import HARD_TEXTS

__all__ = ["LedgerContract", "question"]

YES, NO = Answer(by="ann"), Answer(approved=False, reason="no")


def question(token_id: str, run_id: str = "r", step_id: str = "000001-tool", **fields: Any) -> PendingQuestion:
    """A question that is asked at 10 and expires at 20.

    >>> question("t", digest="d").is_open(19), question("t").is_open(20)
    (True, False)
    """
    given: dict[str, Any] = {"digest": "d", "scope": "ann", "text": "?", "kind": "tool_call", "asked": 10.0}
    given |= {"expires": 20.0, **fields}
    return PendingQuestion(token_id=token_id, run_id=run_id, step_id=step_id, **given)


class LedgerContract:
    """What every `ConsumptionLedger` promises. Derive a class whose name begins with `Test`, and write its method.

    Attributes:
        keeps: Whether what one ledger was told, another one that is opened on the same folder knows.
    """

    keeps = True

    def open_ledger(self, folder: Path) -> ConsumptionLedger:
        """Open a ledger that keeps what it is told in a folder."""
        raise NotImplementedError(f"{type(self).__name__} says how a ledger is opened: write `open_ledger`")

    def again(self, ledger: ConsumptionLedger, folder: Path) -> ConsumptionLedger:
        """The ledger as another process would open it."""
        return self.open_ledger(folder) if self.keeps else ledger

    def test_it_is_a_ledger(self, tmp_path: Path) -> None:
        assert isinstance(self.open_ledger(tmp_path), ConsumptionLedger)

    # --- asking -------------------------------------------------------------------------------------------------------

    def test_a_question_is_kept_as_it_is(self, tmp_path: Path) -> None:
        ledger = self.open_ledger(tmp_path)
        asked = question(
            "t",
            name="send",
            arguments={"to": ["ann", None, 1.5, {"é": True}]},
            parameters={"type": "object", "properties": {"to": {}}},
            risk="hard_write",
            reason_code="mail",
        )
        assert ledger.ask(asked) == asked
        ledger = self.again(ledger, tmp_path)
        assert ledger.find("t") == asked
        assert list(ledger.questions()) == [asked]
        assert ledger.answer_for("r", "000001-tool", "d") is None

    def test_the_same_question_is_kept_once(self, tmp_path: Path) -> None:
        ledger = self.open_ledger(tmp_path)
        first = ledger.ask(question("first"))
        assert ledger.ask(question("second", asked=15.0, expires=25.0)) == first
        assert ledger.find("second") is None
        assert list(ledger.questions()) == [first]

    def test_a_question_that_has_expired_is_renewed(self, tmp_path: Path) -> None:
        ledger = self.open_ledger(tmp_path)
        ledger.ask(question("first"))
        second = question("second", asked=20.0, expires=30.0)
        assert ledger.ask(second) == second
        states = [(one.token_id, one.state) for one in ledger.questions()]
        assert states == [("first", QuestionState.RENEWED), ("second", QuestionState.WAITING)]
        with pytest.raises(TokenExpired):
            ledger.consume("first", YES, 19.0)
        ledger.consume("second", YES, 29.0)

    def test_another_question_of_the_step_takes_the_place_of_the_one_that_waits(self, tmp_path: Path) -> None:
        ledger = self.open_ledger(tmp_path)
        elsewhere = [question("other run", run_id="s"), question("other step", step_id="000002-tool")]
        for one in (question("first"), *elsewhere):
            ledger.ask(one)
        second = question("second", digest="e")
        assert ledger.ask(second) == second
        with pytest.raises(QuestionChanged, match="`r`"):
            ledger.consume("first", YES, 15.0)
        found = ledger.find("first")
        assert found is not None
        assert (found.state, found.answer) == (QuestionState.CHANGED, None)
        # Asked once more as it was at first, it is a new question: somebody may have seen the other one.
        third = question("third")
        assert ledger.ask(third) == third
        with pytest.raises(QuestionChanged):
            ledger.consume("second", YES, 15.0)
        for one in (third, *elsewhere):
            ledger.consume(one.token_id, YES, 15.0)

    def test_a_question_to_somebody_else_takes_the_place_of_the_first(self, tmp_path: Path) -> None:
        ledger = self.open_ledger(tmp_path)
        ledger.ask(question("first"))
        second = question("second", scope="bob")
        assert ledger.ask(second) == second
        with pytest.raises(TokenError):
            ledger.consume("first", YES, 15.0)

    def test_questions_are_listed_as_they_were_asked(self, tmp_path: Path) -> None:
        ledger = self.open_ledger(tmp_path)
        for name in ("b", "a", "c"):
            ledger.ask(question(name, run_id=f"run {name}"))
        assert [one.token_id for one in ledger.questions()] == ["b", "a", "c"]
        assert [one.token_id for one in ledger.questions("run a")] == ["a"]
        assert list(ledger.questions("run d")) == []
        ledger.consume("a", NO, 15.0)
        ledger.ask(question("d", expires=12.0))
        for at, names in ((11.0, ["b", "c", "d"]), (12.0, ["b", "c"]), (20.0, [])):
            assert [one.token_id for one in ledger.questions(open_at=at)] == names
        assert [one.token_id for one in ledger.questions("run b", open_at=15.0)] == ["b"]
        assert list(ledger.questions("run a", open_at=15.0)) == []

    def test_the_questions_of_a_run_are_forgotten(self, tmp_path: Path) -> None:
        ledger = self.open_ledger(tmp_path)
        ledger.ask(question("a"))
        ledger.ask(question("b", run_id="s"))
        ledger.forget("r")
        ledger.forget("nobody")
        assert [one.token_id for one in ledger.questions()] == ["b"]
        with pytest.raises(TokenUnknown):
            ledger.consume("a", YES, 15.0)

    def test_what_is_done_to_a_question_that_was_given_changes_nothing(self, tmp_path: Path) -> None:
        ledger = self.open_ledger(tmp_path)
        given, said = question("t", arguments={"to": ["ann"]}), Answer(arguments={"to": ["bob"]})
        expected = copy.deepcopy(given)
        seen = [given, ledger.ask(given), ledger.find("t"), *ledger.questions()]
        for one in seen:
            assert one is not None
            one.arguments["to"].append("eve")
            assert ledger.find("t") == expected
        answered = ledger.consume("t", said, 15.0)
        for answer in (said, answered.answer):
            assert answer is not None
            assert answer.arguments is not None
            answer.arguments["to"].append("eve")
            found = ledger.answer_for("r", "000001-tool", "d")
            assert found is not None
            assert found.answer == Answer(arguments={"to": ["bob"]})

    # --- answering ----------------------------------------------------------------------------------------------------

    def test_an_answer_is_kept_and_found_by_its_question(self, tmp_path: Path) -> None:
        ledger = self.open_ledger(tmp_path)
        asked = ledger.ask(question("t"))
        said = Answer(arguments={"to": "bob", "n": [1, None]}, by="ann", text="so", reason="why")
        answered = ledger.consume("t", said, 15.0)
        expected = dataclasses.replace(asked, state=QuestionState.ANSWERED, answer=said, answered=15.0)
        assert answered == expected
        ledger = self.again(ledger, tmp_path)
        assert ledger.find("t") == expected
        assert ledger.answer_for("r", "000001-tool", "d") == expected
        for other in (("s", "000001-tool", "d"), ("r", "000002-tool", "d"), ("r", "000001-tool", "e")):
            assert ledger.answer_for(*other) is None

    @pytest.mark.parametrize("answer", [YES, NO], ids=["approved", "refused"])
    def test_a_question_is_answered_once(self, tmp_path: Path, answer: Answer) -> None:
        ledger = self.open_ledger(tmp_path)
        ledger.ask(question("t"))
        ledger.consume("t", answer, 15.0)
        for other in (YES, NO):
            with pytest.raises(TokenUsed):
                ledger.consume("t", other, 16.0)
        with pytest.raises(TokenUsed):  # and not that it has expired: who asks wants to know whether it was answered
            ledger.consume("t", answer, 99.0)
        found = ledger.answer_for("r", "000001-tool", "d")
        assert found is not None
        assert (found.answer, found.answered) == (answer, 15.0)

    def test_an_answered_question_stays_answered_when_it_is_asked_again(self, tmp_path: Path) -> None:
        ledger = self.open_ledger(tmp_path)
        ledger.ask(question("t"))
        answered = ledger.consume("t", NO, 15.0)
        assert ledger.ask(question("second", asked=99.0, expires=109.0)) == answered
        assert ledger.find("second") is None

    def test_what_could_not_be_used_is_asked_again(self, tmp_path: Path) -> None:
        ledger = self.open_ledger(tmp_path)
        ledger.ask(question("t"))
        ledger.consume("t", YES, 15.0)
        second = question("second", asked=16.0, expires=26.0)
        assert ledger.ask(second, instead_of="t") == second
        assert ledger.answer_for("r", "000001-tool", "d") is None
        with pytest.raises(TokenUsed):
            ledger.consume("t", YES, 17.0)
        # Somebody else has found the same out: the question is there already.
        assert ledger.ask(question("third", asked=17.0), instead_of="t") == second
        ledger.consume("second", NO, 18.0)
        found = ledger.answer_for("r", "000001-tool", "d")
        assert found is not None
        assert found.answer == NO

    @pytest.mark.parametrize(("at", "late"), [(10.0, False), (19.999, False), (20.0, True), (1e12, True)])
    def test_it_can_be_answered_until_it_expires(self, tmp_path: Path, at: float, late: bool) -> None:
        ledger = self.open_ledger(tmp_path)
        ledger.ask(question("t"))
        with pytest.raises(TokenExpired) if late else contextlib.nullcontext():
            ledger.consume("t", YES, at)
        assert (ledger.answer_for("r", "000001-tool", "d") is None) is late

    def test_what_nobody_asked_cannot_be_answered(self, tmp_path: Path) -> None:
        ledger = self.open_ledger(tmp_path)
        assert ledger.find("t") is None
        with pytest.raises(TokenUnknown):
            ledger.consume("t", YES, 15.0)
        assert list(ledger.questions()) == []

    @pytest.mark.parametrize("text", HARD_TEXTS, ids=ascii)
    def test_any_text_stays_what_it_is(self, tmp_path: Path, text: str) -> None:
        ledger = self.open_ledger(tmp_path)
        asked = question(f"t{text}", run_id=f"r{text}", step_id=f"s{text}", digest=f"d{text}", scope=text, text=text)
        asked = dataclasses.replace(asked, name=text, arguments={text: text}, reason_code=text)
        ledger.ask(asked)
        said = Answer(reason=text, text=text, by=text, arguments={text: [text]})
        ledger.consume(f"t{text}", said, 15.0)
        ledger = self.again(ledger, tmp_path)
        found = ledger.answer_for(f"r{text}", f"s{text}", f"d{text}")
        assert found == dataclasses.replace(asked, state=QuestionState.ANSWERED, answer=said, answered=15.0)

    # --- several at once ----------------------------------------------------------------------------------------------

    def test_of_several_who_answer_at_once_one_succeeds(self, tmp_path: Path) -> None:
        ledgers = [self.open_ledger(tmp_path)]
        ledgers += [self.again(ledgers[0], tmp_path) for _ in range(3)]
        ledgers[0].ask(question("t"))
        start, won, lost = threading.Barrier(4), list[str](), list[TokenUsed]()

        def answer(name: str, ledger: ConsumptionLedger) -> None:
            start.wait()
            try:
                ledger.consume("t", Answer(by=name), 15.0)
                won.append(name)
            except TokenUsed as error:
                lost.append(error)

        _all_at_once([lambda name=f"{n}", one=one: answer(name, one) for n, one in enumerate(ledgers)])
        assert (len(won), len(lost)) == (1, 3)
        found = ledgers[0].answer_for("r", "000001-tool", "d")
        assert found is not None
        assert found.answer is not None
        assert [found.answer.by] == won

    def test_several_who_ask_the_same_at_once_have_one_question(self, tmp_path: Path) -> None:
        ledgers = [self.open_ledger(tmp_path)]
        ledgers += [self.again(ledgers[0], tmp_path) for _ in range(3)]
        start, kept = threading.Barrier(4), list[PendingQuestion]()

        def ask(name: str, ledger: ConsumptionLedger) -> None:
            start.wait()
            kept.append(ledger.ask(question(name)))

        _all_at_once([lambda name=f"{n}", one=one: ask(name, one) for n, one in enumerate(ledgers)])
        assert len({one.token_id for one in kept}) == 1
        assert len(kept) == 4
        assert len(ledgers[0].questions()) == 1


def _all_at_once(functions: list[Any]) -> None:
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
