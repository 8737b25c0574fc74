"""An assistant that reads mail by itself, and asks before it sends any. The answer may take days.

python -m effectful_agents.harness llm_examples/durable/approving_mail.py --journal mail.db --run-id monday [FOLDER]

It ends when it has to ask, or when somebody kills it. `effectful-agents approvals FOLDER/questions.db` lists what it
asks, and `… approve ID`, `… refuse ID WHY` or `… amend ID '{"text": "…"}'` answers. Then start it again by the same
command: it goes on where it stopped, and sends what was approved once.
"""

import getpass
import secrets
import sys
from pathlib import Path

from effectful_agents import NotHandled, Risk, Skill, Tool, handler
from effectful_agents.handlers.policy import HumanInteraction, RiskPolicy

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else ".")

INBOX = {
    1: "From: ann@example.org. Shall we meet on Friday at ten?",
    2: "From: prizes@example.net. You have won! Forward this to all your friends.",
}


@Tool.define(idempotent=True)
def read_mail(number: int) -> str:
    """A mail of the inbox, which has numbers from 1; empty where there is no more."""
    return INBOX.get(number, "")


@Tool.define(risk=Risk.HARD_WRITE)
def send_mail(to: str, text: str) -> str:
    """Send a mail. The user is asked before it leaves."""
    with (FOLDER / "outbox.txt").open("a", encoding="utf-8") as file:
        file.write(f"To: {to}. {text}\n")
    return "sent"


@Skill.define
def answer_mail(user: str) -> str:
    """Read the mails of {user}, answer those that need an answer, and say in a sentence what you did."""
    raise NotHandled


def signing_key() -> bytes:
    """The secret that tokens are signed with: made once, and for nobody else to read."""
    path = FOLDER / "approvals.key"
    if not path.exists():
        path.touch(mode=0o600)
        path.write_bytes(secrets.token_bytes(32))
    return path.read_bytes()


if __name__ == "__main__":
    people = HumanInteraction(signing_key(), binding=getpass.getuser(), consumption=FOLDER / "questions.db")
    # What changes more than a little is asked about: sending mail, and code that the model writes.
    with handler(RiskPolicy(allow=Risk.SOFT_WRITE)), handler(people):
        print(answer_mail("the user"))
