"""Asking people while nobody runs: the run ends with a token, and goes on when somebody has answered."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import hmac
import json
import math
import os
import shlex
from collections.abc import Callable, Generator, Mapping, Sequence, Set
from typing import Any

from effectful_agents.encoding import to_jsonable, tool_codec
from effectful_agents.encoding.questions import amended_arguments, question_digest, shown_arguments
from effectful_agents.errors import (
    AnswerError,
    ConfigurationError,
    EncodingError,
    OptionError,
    QuestionChanged,
    Suspended,
    TokenExpired,
    TokenScopeMismatch,
)
from effectful_agents.handlers.policy.answers import checked_answer
from effectful_agents.handlers.policy.ask_user import ask_user as _ask_user
from effectful_agents.handlers.policy.external import called, result_of
from effectful_agents.handlers.policy.ledgers import unknown
from effectful_agents.handlers.policy.sqlite_ledger import SqliteLedger
from effectful_agents.handlers.policy.tokens import (
    HmacSigner,
    Signer,
    TokenClaims,
    is_scope,
    read_token,
    scope_digest,
    tampered,
    write_token,
)
from effectful_agents.messages import Message
from effectful_agents.messages.text import printable_lines
from effectful_agents.operations.approvals import ConsumptionLedger, PendingQuestion
from effectful_agents.operations.journal import not_made_again, record
from effectful_agents.operations.loop import AssistantResult, call_assistant
from effectful_agents.operations.policy import Answer, ProposedEffect, Question, request_approval
from effectful_agents.operations.steps import StepIds
from effectful_agents.operations.world import fresh_id, now
from effectful_agents.runtime import ObjectInterpretation, fwd, implements
from effectful_agents.types import Scope, Tool
from effectful_agents.types.walk import ToolSet

__all__ = ["HumanInteraction", "in_scope"]

_scope: contextvars.ContextVar[str] = contextvars.ContextVar("effectful_agents_approval_scope", default="")
"""The scope that the code runs for, where an `AgentHost` runs it."""


@contextlib.contextmanager
def in_scope(scope: str) -> Generator[None]:
    """Where what is asked is asked of a scope."""
    token = _scope.set(scope)
    try:
        yield
    finally:
        _scope.reset(token)


class HumanInteraction(ObjectInterpretation[Any, Any]):
    """Suspend a durable run that has to ask somebody, and give it the answer when it is resumed.

    The question is kept in the ledger, and the call raises `Suspended` with a token for it. `redeem`, or an
    `AgentHost`, takes the token and the answer, in whatever process. The same run, resumed, then goes on with the
    answer; without one it asks the same again, with the same token until that has expired.

    A `Journal` has to keep the run, and a policy has to ask (`RiskPolicy`, say). A call of a tool that is `external`
    asks in any case: the answer is its result, as JSON in the `text` of the `Answer`.

    Args:
        signer: Signs the tokens: a key of at least 32 bytes, for HMAC-SHA256, or a `Signer`.
        binding: Who may answer, as a text: whoever redeems a token has to be of the same scope. A function gets the
            question. None: the scope that an `AgentHost` runs the program for.
        consumption: What keeps the questions and the answers, each once: a path of an SQLite file, or a
            `ConsumptionLedger`. All processes that resume runs and redeem tokens share it.
        ttl_seconds: For how long a question can be answered; above 0.
        encode_token: Makes of a token what is handed out: to encrypt it, say. Then `decode_token` undoes that.
        decode_token: See there; what it raises says that a token is none.
        ask_user: Whether the model gets the tool `ask_user`, to ask for what it needs to know.

    Raises:
        OptionError: An option has a value that it cannot have.

    >>> from effectful_agents import NotHandled, Risk, Skill, Tool, handler, harness
    >>> from effectful_agents.handlers.durability import MemoryCheckpointer
    >>> from effectful_agents.handlers.policy import MemoryLedger, RiskPolicy
    >>> from effectful_agents.testing import ScriptedModel, calls
    >>> @Tool.define(risk=Risk.HARD_WRITE)
    ... def send(to: str) -> str:
    ...     '''Send a mail.'''
    ...     return f"sent to {to}"
    >>> @Skill.define
    ... def inform(name: str) -> str:
    ...     '''Inform {name}.'''
    ...     raise NotHandled
    >>> runs, ledger = MemoryCheckpointer(), MemoryLedger()
    >>> people = HumanInteraction(b"32 random bytes, kept as a secret", binding="ann", consumption=ledger)
    >>> def program(*replies):
    ...     stack = harness(journal=runs, run_id="monday", system_prompt="brief")
    ...     with handler(stack), handler(ScriptedModel(*replies)):
    ...         with handler(RiskPolicy(allow=Risk.READ)), handler(people):
    ...             return inform("Bob")
    >>> try:
    ...     program(calls("send", to="Bob"))
    ... except Suspended as signal:
    ...     asked = signal
    >>> asked.question.name, dict(asked.question.arguments)
    ('send', {'to': 'Bob'})
    >>> people.redeem(asked.token, "ann", Answer(approved=True)).run_id
    'monday'
    >>> program("He knows.")
    'He knows.'
    """

    def __init__(
        self,
        signer: Signer | bytes,
        *,
        consumption: ConsumptionLedger | str | os.PathLike[str],
        binding: str | Callable[[Question], str] | None = None,
        ttl_seconds: float = 7 * 86_400,
        encode_token: Callable[[str], str] | None = None,
        decode_token: Callable[[str], str] | None = None,
        ask_user: bool = False,
    ) -> None:
        self._signer: Signer = HmacSigner(signer) if isinstance(signer, bytes) else signer
        if not isinstance(self._signer, Signer):
            raise OptionError(f"`signer` is {type(signer).__name__}; it is a key of bytes, or has `sign` and `verify`.")
        if not (binding is None or callable(binding) or is_scope(binding)):
            raise OptionError(f"`binding` is {binding!r}; it is a text that says who may answer, or makes one.")
        if not isinstance(ttl_seconds, int | float) or not 0 < ttl_seconds < math.inf:
            raise OptionError(f"`ttl_seconds` is {ttl_seconds!r}; it is a number of seconds above 0.")
        if (encode_token is None) != (decode_token is None):
            raise OptionError("`encode_token` and `decode_token` undo each other; give both, or neither.")
        is_path = isinstance(consumption, str | os.PathLike)
        self.ledger: ConsumptionLedger = SqliteLedger(consumption) if is_path else consumption
        if not isinstance(self.ledger, ConsumptionLedger):
            raise OptionError(
                f"`consumption` is {type(consumption).__name__}; it is the path of a file, or a `ConsumptionLedger`."
            )
        self._binding = binding
        self._ttl = ttl_seconds
        self._encode, self._decode = encode_token, decode_token
        self._offers = ToolSet([_ask_user] if ask_user else [])

    @property
    def has_binding(self) -> bool:
        """Whether it says itself who may answer."""
        return self._binding is not None

    # --- in the run ---------------------------------------------------------------------------------------------------

    @implements(request_approval)
    def request_approval(self, question: Question) -> Answer:
        self._check_place(question)
        scope = self._scope_of(question)
        # Who is asked is a part of it: an answer of somebody else's is none to this question. So is the number: what a
        # policy makes of an answer is another question, though it may ask what the first one did.
        asked_in = [_instance(question), scope, *([question.number] if question.number > 1 else [])]
        digest = question_digest(question, asked_in=json.dumps(asked_in))
        kept = self.ledger.answer_for(question.run_id, question.step_id, digest)
        kept = kept or self._ask(self._pending(question, digest, scope))
        while kept.answer is not None:
            try:
                return _decoded(question, kept.answer)
            except AnswerError as error:
                again = self._pending(question, digest, scope, f" What was answered could not be used: {error}")
                kept = self._ask(again, instead_of=kept.token_id)
        told = f"the run `{kept.run_id}` waits for somebody: {printable_lines(kept.text)} {self._how_to_answer(kept)}"
        raise Suspended(told, question=kept, token=self.token_of(kept))

    @implements(Tool.__apply__)
    def call_external(self, tool: Tool, /, *args: Any, **kwargs: Any) -> Any:
        return called(tool, args, kwargs)

    @implements(call_assistant)
    def call_assistant(
        self, messages: Sequence[Message], response_type: Any, env: Mapping[str, Any], tools: Set[Tool] = frozenset()
    ) -> AssistantResult[Any]:
        offered = self.discover(env)
        return fwd(messages, response_type, env, offered.after(tools)) if offered else fwd()

    def discover(self, env: Mapping[str, Any]) -> ToolSet:
        return ToolSet() if isinstance(env, Scope) and not env.skill.uses_tools else self._offers

    def _how_to_answer(self, question: PendingQuestion) -> str:
        path = getattr(self.ledger, "path", None)
        if path is None:
            return "Answer it with the token of this signal, and resume the run."
        console = shlex.join(["effectful-agents", "approvals", path, "show", question.token_id[:8]])
        return f"`{console}` says how to answer it, unless you have its token. Then resume the run."

    def _check_place(self, question: Question) -> None:
        text = printable_lines(question.text)
        if not question.run_id or not question.step_id:
            raise ConfigurationError(
                f"a person has to be asked ({text}), and there is no run that could wait for them. Install a "
                "journal, as by `harness(journal=…, run_id=…)`, or in place of `HumanInteraction` somebody who answers "
                "at once: `AskInTerminal()`, `handler({request_approval: function})`."
            )
        if tool := not_made_again():
            raise ConfigurationError(
                f"a person has to be asked ({text}) in the middle of the tool `{tool}`, and a resumed run "
                f"would not come back there: what it had done by then would happen twice. Declare the tool "
                "`rerun=True`, and have its effects in tools of their own, which are answered from the journal."
            )

    def _pending(self, question: Question, digest: str, scope: str, told: str = "") -> PendingQuestion:
        at = now()
        return PendingQuestion(
            token_id=fresh_id(),
            run_id=question.run_id,
            step_id=question.step_id,
            digest=digest,
            scope=scope,
            text=question.text + told,
            reason_code=question.reason_code,
            returns=question.returns,
            asked=at,
            expires=at + self._ttl,
            **({} if question.effect is None else _about(question.effect)),
        )

    def _ask(self, question: PendingQuestion, *, instead_of: str = "") -> PendingQuestion:
        self.token_of(question)  # what has no token is not asked
        return self.ledger.ask(question, instead_of=instead_of)

    def _scope_of(self, question: Question) -> str:
        binding = self._binding
        scope = _scope.get() if binding is None else binding(question) if callable(binding) else binding
        if not is_scope(scope):
            raise ConfigurationError(
                f"nobody says who may answer ({printable_lines(question.text)}): `binding` is {binding!r}, which gives "
                f"{scope!r}. It is a text, or makes one; without it an `AgentHost` has to run the program."
            )
        return scope

    # --- outside of it ------------------------------------------------------------------------------------------------

    def token_of(self, question: PendingQuestion) -> str:
        """The token of a question that is kept: always the same, as long as the key is.

        Raises:
            ConfigurationError: The names of its run and step are too long for one, or `encode_token` failed.
        """
        token = write_token(TokenClaims.of(question), self._signer)
        if self._encode is None:
            return token
        try:
            encoded = self._encode(token)
        except Exception as error:  # it is the program's, and may raise anything
            # Its text, and what it was made of, may be the token; errors are written down.
            kind = type(error).__name__
            raise ConfigurationError(f"`encode_token` raised {kind}, so that nobody can be asked.") from None
        if not isinstance(encoded, str):
            raise ConfigurationError(f"`encode_token` gave {type(encoded).__name__}; it gives a text.")
        return encoded

    def question_of(self, token: str, scope: str) -> PendingQuestion:
        """What is asked with a token, for somebody of its scope.

        Args:
            token: The token.
            scope: What they are of, as it was verified.

        Returns:
            The question, which may have been answered meanwhile (`state`).

        Raises:
            TokenTampered: It is no token, or was changed.
            TokenScopeMismatch: It is for another scope.
            TokenExpired: Its time is over.
            TokenUnknown: The ledger has no question for it.
        """
        claims = self._read(token)
        given = scope_digest(scope) if is_scope(scope) else ""
        if not hmac.compare_digest(claims.scope, given):
            raise TokenScopeMismatch("this token is for somebody else.")
        question = self.ledger.find(claims.token_id)
        if now() >= claims.expires and (question is None or question.answer is None):
            raise TokenExpired("this token has expired. When its run is resumed, it asks again, with another token.")
        if question is None:
            raise unknown()
        if not claims.fits(question):
            raise QuestionChanged("the ledger has another question under this token.")
        return question

    def redeem(self, token: str, scope: str, answer: Answer) -> PendingQuestion:
        """Answer the question of a token, once. The run goes on with the answer when it is resumed.

        Args:
            token: The token.
            scope: What they are of who answer, as it was verified.
            answer: What they say. Amended arguments are JSON, and only those that change.

        Returns:
            The question, answered; `run_id` says which run to resume.

        Raises:
            TokenError: One of its kinds says why nothing was done with the token: see `question_of`.
            TokenUsed: The question has been answered.
            QuestionChanged: The run asks something else by now.
            AnswerError: The answer does not fit; it was not kept.
        """
        question = self.question_of(token, scope)
        if question.is_open(now()):
            answer = checked_answer(question, answer)
        return self.ledger.consume(question.token_id, answer, now())

    def open_questions(self) -> Sequence[PendingQuestion]:
        """What can be answered now, in the order in which it was asked."""
        return self.ledger.questions(open_at=now())

    def _read(self, token: str) -> TokenClaims:
        if self._decode is not None:
            try:
                token = self._decode(token)
            except Exception as error:  # it is the program's, and may raise anything
                raise tampered() from error
        return read_token(token, self._signer)

    def manifest(self) -> Mapping[str, object]:
        return {
            "stages": ["approval.suspend", "approval.redeem"],
            "approval": {
                "signer": type(self._signer).__name__,
                "ledger": type(self.ledger).__name__,
                "ttl_seconds": self._ttl,
                "codec": self._encode is not None,
                "ask_user": bool(self._offers),
            },
        }


def _instance(question: Question) -> str:
    """What tells this run from another one of its name, which somebody has deleted: no answer is for both."""
    with StepIds(prefix=f"{question.step_id}/question/", run_id=question.run_id):
        return record(fresh_id)


def _about(effect: ProposedEffect) -> dict[str, Any]:
    return {
        "kind": str(effect.kind),
        "name": effect.name or str(effect.kind),
        "arguments": shown_arguments(effect, strict=True) | _of_request(effect),
        "parameters": {} if effect.tool is None else _schema_of(effect.tool),
        "risk": effect.risk.name.lower(),
    }


def _of_request(effect: ProposedEffect) -> dict[str, Any]:
    """What a person is shown of a request: its last message."""
    messages = () if effect.request is None else effect.request["messages"]
    return {"last message": to_jsonable(messages[-1])} if messages else {}


def _schema_of(tool: Tool[..., Any]) -> Mapping[str, Any]:
    try:
        return dict(tool_codec(tool).definition()["function"]["parameters"])
    except EncodingError:  # it is for code, and not described to a model
        return {}


def _decoded(question: Question, answer: Answer) -> Answer:
    """An answer with the amended arguments as values of the tool's types.

    Raises:
        AnswerError: They are none; or it is no result of the tool, where that is wanted.
    """
    if question.returns is not None and answer.approved and question.effect and question.effect.tool:
        result_of(question.effect.tool, answer.text)
    if answer.arguments is None:
        return answer
    if question.effect is None:
        raise AnswerError("a question for information has no arguments to be amended.")
    amended = amended_arguments(question.effect, answer.arguments)
    return dataclasses.replace(answer, arguments={name: amended[name] for name in answer.arguments})
