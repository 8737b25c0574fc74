"""What tests of approvals share: a program that sends mails in one of several ways, and people who are asked."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable
from typing import Any

from effectful_agents import NotHandled, Risk, Skill, Tool, handler
from effectful_agents.errors import StepDenied, Suspended
from effectful_agents.handlers.durability import MemoryCheckpointer
from effectful_agents.handlers.policy import Policy
from effectful_agents.operations.policy import Answer, Decision, Disposition, Question, request_approval
from effectful_agents.operations.records import RunStatus
from effectful_agents.testing import calls
from tests.handlers.durability.journaling import Crashing, plays, running


def asks_before_mail(effect: Any) -> Any:
    """The policy of all runs here, unless a test has another one."""
    return Decision(Disposition.REQUIRE_APPROVAL, "mail", "May it go?") if effect.name in ("send", "post") else None


ASKING = Policy(asks_before_mail)


class Office:
    """Mails that are sent, and the program that sends them in one of several ways."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

        @Tool.define(risk=Risk.HARD_WRITE)
        def send(to: str, on: datetime.date = datetime.date(2026, 12, 1)) -> str:
            """Send a mail."""
            assert isinstance(on, datetime.date)
            self.sent.append((to, on.isoformat()))
            return f"sent to {to}"

        @Tool.define(risk=Risk.HARD_WRITE, concurrent=True)
        def post(to: str) -> str:
            """Post a letter."""
            self.sent.append((to, "posted"))
            return f"posted to {to}"

        @Tool.define(concurrent=True)
        def look(where: str) -> str:
            """Look somewhere."""
            self.sent.append((where, "looked"))
            return "nothing"

        @Skill.define
        def assist(wish: str) -> str:
            """Help with {wish}, dear helper."""
            raise NotHandled

        @Skill.define
        def deputy(wish: str) -> str:
            """See to {wish}, dear deputy."""
            raise NotHandled

        @Skill.define
        def solve(n: int) -> str:
            """Solve {n}."""
            raise NotHandled

        self.send, self.post, self.assist, self.solve = send, post, assist, solve


CODE = """
try:
    told = send('ann')
except Exception as error:
    told = str(error)
print(told)
"""

BODY = """
def solve(n):
    try:
        return send('ann')
    except Exception as error:
        return str(error)
"""

DEPUTY = ("dear deputy", [calls("send", to="ann"), "it is seen to"])
WAYS: dict[str, tuple[tuple[Any, ...], Callable[[Office], Any]]] = {
    "call": ((("dear helper", [calls("send", to="ann"), "done"]),), lambda office: office.assist("mail")),
    "session": ((("dear helper", [calls("exec_code", code=CODE), "done"]),), lambda office: office.assist("mail")),
    "body": (
        (("Solve", [calls("write_and_run_body", implementation={"code": BODY})]),),
        lambda office: office.solve(3),
    ),
    "nested": (
        (("dear helper", [calls("deputy", wish="mail"), "done"]), DEPUTY),
        lambda office: office.assist("mail"),
    ),
    "program": ((), lambda office: sends_itself(office)),
}


def sends_itself(office: Office) -> str:
    """A program that calls the tool, and goes on without what it may not do."""
    try:
        return office.send("ann")
    except StepDenied as error:
        return str(error)


class Person:
    """Who is asked.

    Args:
        answers: What they say, each in turn; a signal is raised. The last one is said again and again.
    """

    def __init__(self, *answers: Answer | BaseException) -> None:
        self.answers = list(answers)
        self.asked: list[Question] = []

    def __call__(self, question: Question) -> Answer:
        self.asked.append(question)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer


WAIT = Suspended("wait")
YES, NO = Answer(by="ann"), Answer(approved=False, reason="not today", by="ann")


@dataclasses.dataclass
class Trial:
    """A program that is run, and run again, as one run."""

    way: str = "call"
    store: MemoryCheckpointer = dataclasses.field(default_factory=Crashing)
    office: Office = dataclasses.field(default_factory=Office)
    replies: Any = None

    def run(self, person: Any = None, policy: Any = ASKING) -> Any:
        """Run it, or go on with it; `person` is a function, or a handler of its own."""
        replies, program = WAYS[self.way]
        model, self.asked_model = plays(*(self.replies or replies))
        asked = {} if person is None else {request_approval: person} if callable(person) else person
        with running(self.store, model), handler(policy), handler(asked):
            return program(self.office)

    @property
    def status(self) -> RunStatus:
        return next(info.status for info in self.store.runs() if info.run_id == "run")

    def told(self) -> str:
        """What the model was told of its last tool call."""
        return self.asked_model[-1]["messages"][-1]["content"]
