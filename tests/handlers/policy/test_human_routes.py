"""By whatever way a model comes to a tool, its run waits before it, and goes on as it was answered."""

from __future__ import annotations

from typing import Any

import pytest

from effectful_agents import handler, harness
from effectful_agents.errors import ConfigurationError, StepDenied, Suspended
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.policy import HumanInteraction, MemoryLedger, Policy
from effectful_agents.operations.policy import Answer, Disposition
from effectful_agents.testing import ScriptedModel
from tests.handlers.policy.routes import ROUTES, TO, assistant, sent

ASKS = Policy(lambda effect: Disposition.REQUIRE_APPROVAL if effect.name == "send" else None, name="asks")

NOT_MADE_AGAIN = "through a tool"
"""A tool that calls the other one, and that no resumed run would come back to: `forward` is not `rerun`."""

each_route = pytest.mark.parametrize("route", [route for route in ROUTES if route != NOT_MADE_AGAIN])


class Run:
    """A run that takes one of the ways, again and again, with a model that goes on where it was."""

    def __init__(self, route: str) -> None:
        self.options, replies = ROUTES[route]
        self.model = ScriptedModel(*replies)
        self.store, self.people = (
            MemoryCheckpointer(),
            HumanInteraction(bytes(32), binding="a", consumption=MemoryLedger()),
        )
        sent.clear()

    def go_on(self) -> Any:
        options: Any = {"system_prompt": "brief", "eval_provider": "none", "type_checker": "none", **self.options}
        with handler(harness(**options)), handler(self.model), handler(Journal("run", self.store)):
            with handler(ASKS), handler(self.people):
                return assistant("Send it.")

    def waits(self) -> Suspended:
        with pytest.raises(Suspended) as caught:
            self.go_on()
        return caught.value


@each_route
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(), [TO]),
        (Answer(approved=False, reason="no"), []),
        (Answer(arguments={"to": "ann@example.org"}), ["ann@example.org"]),
    ],
    ids=["approved", "refused", "amended"],
)
def test_the_run_waits_before_the_effect_and_goes_on_as_it_was_answered(route, answer, expected):
    run = Run(route)
    for _ in range(2):
        signal = run.waits()
        assert (signal.question.name, signal.question.arguments) == ("send", {"to": TO})
        assert sent == []
    run.people.redeem(signal.token, "a", answer)
    for _ in range(2):
        try:
            run.go_on()
        except StepDenied:  # a body that code has written does not catch it
            assert not answer.approved
        assert sent == expected
    assert run.people.open_questions() == []


def test_a_run_does_not_wait_where_it_would_not_come_back_to():
    run = Run(NOT_MADE_AGAIN)
    with pytest.raises(ConfigurationError, match=r"`forward`.*rerun=True"):
        run.go_on()
    assert sent == []
    assert run.people.ledger.questions() == []
