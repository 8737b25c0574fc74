"""The handler that has a gateway perform operations."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence, Set
from typing import Any

from effectful_agents.encoding.questions import amended_arguments, shown_arguments
from effectful_agents.errors import AgentsError, Denied, OptionError, StepDenied
from effectful_agents.handlers.delegation.seam.failures import bounded
from effectful_agents.handlers.delegation.seam.gateway import Gateway
from effectful_agents.handlers.delegation.seam.held import HeldTools
from effectful_agents.handlers.delegation.seam.http import HttpGateway
from effectful_agents.handlers.delegation.seam.opening import Opening
from effectful_agents.handlers.delegation.seam.settings import crossing
from effectful_agents.messages import Finish, Message, Response, StreamEvent
from effectful_agents.operations.asking import ask_person
from effectful_agents.operations.call_context import current_call_context
from effectful_agents.operations.effects import effect_of_request
from effectful_agents.operations.elsewhere import DescribedCall, DescribedEffect, PermittedDecision
from effectful_agents.operations.loop import AssistantResult, call_assistant, model_in_use, send_request
from effectful_agents.operations.policy import (
    ALLOW,
    Decision,
    Disposition,
    EffectKind,
    ProposedEffect,
    Question,
    decide,
    ending_calls,
    enforced,
    strictest,
)
from effectful_agents.operations.steps import current_ids, emit
from effectful_agents.runtime import ObjectInterpretation, fwd, implements, interpretation
from effectful_agents.types import Scope, Tool

__all__ = ["RemoteOperations"]

_RETRIES = 2
_CHANGED = "The gateway no longer has this tool, or has changed it since it was offered."


class RemoteOperations(ObjectInterpretation[Any, Any]):
    """Have a gateway ask the models, decide, and run the tools that it holds: the program has no key and no policy.

    Handles `send_request`, so that it stands inside of `LiteLLMConfigurer`, which would take its requests: inside of
    `harness()`. It handles `decide`, as one policy more: the gateway is asked about the calls of the program's tools
    before they happen, and a refusal is what that of a local policy is. A person who has to approve is asked here,
    where the gateway lets the program's people do so. It handles `call_assistant`, to offer the tools that the gateway
    holds behind those from further out.

    The gateway is greeted when it is first needed, and again when it was started anew. A tool of the program crosses
    once; requests name it. Of a resumed run, what is answered from its journal does not cross.

    Args:
        gateway: The address of one, or any object that is a `Gateway`.
        token: What lets the program in; for an address only.
        model: The model that is answered for, as with `HttpModel`: requests that name others are forwarded. None
            answers all.
        offer_tools: Whether the tools that the gateway holds are offered to every skill. Without, a skill has those
            that it sees: `tools` has them.
        timeout: Seconds that may pass between two signs of life of the gateway; for an address only.
        num_retries: How often something is asked again that failed and may be asked again. A call of a tool is, only
            where it cannot have happened.

    Raises:
        OptionError: An option has a value that it cannot have.
        ModelAccessError: From a request: the gateway does not let the program in, or there is none.
        SeamVersionError: From a request: it speaks no version that is spoken here.
        ProviderError: From a request: it, or the service behind it, failed; see the branches of this error.
        Denied: From a request: it may not be made.
        Suspended: From a request or a decision: the run waits for a person, as with a local policy.

    >>> RemoteOperations("http://127.0.0.1:8700", token="a secret")
    RemoteOperations(HttpGateway('http://127.0.0.1:8700'))
    """

    def __init__(
        self,
        gateway: str | Gateway,
        *,
        token: str | None = None,
        model: str | None = None,
        offer_tools: bool = True,
        timeout: float | None = 60.0,
        num_retries: int = _RETRIES,
    ) -> None:
        if isinstance(gateway, str):
            gateway = HttpGateway(gateway, token=token, timeout=timeout)
        elif token is not None:
            raise OptionError("`token` goes with the address of a gateway; this one is an object.")
        if not isinstance(gateway, Gateway):
            raise OptionError(
                f"`gateway` is {type(gateway).__name__}; it is an address, or has the methods of `Gateway`."
            )
        if type(num_retries) is not int or num_retries < 0:
            raise OptionError(f"`num_retries` is {num_retries!r}; something is asked again 0 times or more.")
        self.model = model
        self.offer_tools = offer_tools
        self._gateway = gateway
        self._opening = Opening(gateway, num_retries)
        self._held = HeldTools(self._called)

    def __repr__(self) -> str:
        return f"RemoteOperations({self._gateway!r})"

    @property
    def tools(self) -> Sequence[Tool[..., Any]]:
        """The tools that the gateway holds, as the program may use them too; it is asked for them."""
        return self._held.of(self._opening.welcome()).order

    def manifest(self) -> Mapping[str, object]:
        return {"model": self.model, "policies": ["gateway"]}

    # --- models -------------------------------------------------------------------------------------------------------

    @implements(model_in_use)
    def model_in_use(self) -> str | None:
        welcome = self._opening.last
        return fwd() or self.model or (welcome.model if welcome else None) or None

    @implements(send_request)
    def send_request(self, **request: Any) -> Response:
        if self.model is not None and request.get("model") not in (None, "", self.model):
            return fwd()
        if self.model is not None:
            request["model"] = self.model
        told = _Told() if emit in interpretation() and request.get("n", 1) == 1 else None
        reply = self._reply(request, told)
        # One that did not come in pieces is told by whoever asked.
        if told is not None and told.begun:
            emit(Finish(reply))
        return reply

    def _reply(self, request: dict[str, Any], told: _Told | None) -> Response:
        asked, permit = crossing(request), ""

        def ask() -> Response:
            return self._gateway.completion(
                self._opening.referring(asked), current_call_context(), tell=told, permit=permit
            )

        while True:
            try:
                return self._opening.once_more(ask)
            except Denied as error:
                permit = self._approved(request, error)

    def _approved(self, request: Any, error: Denied) -> str:
        """The permit for a request, if a person approves it.

        Raises:
            Denied: It may not be made. There is nothing to go on with, so that any refusal ends the call.
        """
        decision = error.decision
        effect: Any = effect_of_request(request, model_in_use() or "")
        answer = None
        if not isinstance(decision, Decision):
            raise ending_calls(error)
        if decision.disposition is Disposition.REQUIRE_APPROVAL:
            text = decision.message or "May the model be asked?"
            answer = ask_person(Question(text=text, effect=effect, reason_code=decision.reason_code))
            allowed = answer.approved is True
            kind = Disposition.ALLOW if allowed else Disposition.DENY_STEP
            decision = dataclasses.replace(decision, disposition=kind, message=answer.reason or decision.message)
        elif decision.allows:
            decision = dataclasses.replace(decision, disposition=Disposition.TERMINATE_RUN)
        try:
            enforced(effect, decision, answer)
        except StepDenied as denied:
            raise ending_calls(Denied(denied.decision)) from error
        return getattr(decision, "permit", "")

    # --- deciding -----------------------------------------------------------------------------------------------------

    @implements(decide)
    def decide(self, effect: ProposedEffect) -> Decision:
        mine = self._judged(effect)
        return strictest(mine, fwd(effect.with_arguments(mine.arguments)))

    def _judged(self, effect: ProposedEffect) -> Decision:
        # A request to a model is decided about where it is made. What has happened already can only be told again.
        if effect.kind == EffectKind.MODEL_CALL or effect.replayed:
            return ALLOW
        try:
            if not self._opening.welcome().decides:
                return ALLOW
            decision = self._opening.once_more(lambda: self._decision(effect))
        except AgentsError as error:
            # A policy that fails denies the step, and the model would try the next one; here all of them would fail.
            error.ends_call = True
            raise
        ref = self._held.ref_of(effect.tool)
        changed = decision.arguments
        if changed is not None and effect.tool is not None and not ref:
            amended = amended_arguments(effect, changed)
            changed = {name: amended[name] for name in changed}
        if ref and decision.permit:
            self._held.permit(ref, effect.with_arguments(changed).arguments, decision.permit)
        return dataclasses.replace(decision, arguments=changed).by("gateway")

    def _decision(self, effect: ProposedEffect) -> PermittedDecision:
        ref = self._held.ref_of(effect.tool)
        if ref and not self._held.has(ref, self._opening.welcome()):
            return PermittedDecision(Disposition.DENY_STEP, "tool_changed", _CHANGED)
        return self._gateway.decide(self._described(effect), current_call_context())

    def _described(self, effect: ProposedEffect) -> DescribedEffect:
        return DescribedEffect(
            kind=str(effect.kind),
            name=effect.name,
            arguments=shown_arguments(effect),
            ref=self._held.ref_of(effect.tool),
            risk=effect.risk,
            receiver=effect.receiver,
            by_code=effect.by_code,
            again=effect.again,
            step_id=effect.step_id,
            run_id=effect.run_id,
        )

    # --- tools of the gateway -----------------------------------------------------------------------------------------

    @implements(call_assistant)
    def call_assistant(
        self, messages: Sequence[Message], response_type: Any, env: Mapping[str, Any], tools: Set[Tool] = frozenset()
    ) -> AssistantResult[Any]:
        if not self.offer_tools or (isinstance(env, Scope) and not env.skill.uses_tools):
            return fwd()
        held = self._held.of(self._opening.welcome())
        return fwd(messages, response_type, env, held.after(tools)) if held else fwd()

    def _called(self, ref: str, arguments: Mapping[str, Any], permit: str) -> Any:
        ids = current_ids()
        call = DescribedCall(ref=ref, arguments=arguments, permit=permit, run_id=ids.run_id if ids else "")

        def ask() -> Any:
            if self._held.has(ref, self._opening.welcome()):
                return self._gateway.call_tool(call, current_call_context())
            raise AgentsError(_CHANGED)

        try:
            outcome = self._opening.once_more(ask)
        except Denied as error:
            if getattr(error.decision, "disposition", None) in (Disposition.DENY_STEP, Disposition.REQUIRE_APPROVAL):
                raise StepDenied(error.decision) from None
            raise ending_calls(error) from None
        if outcome.error:
            raise AgentsError(f"the gateway's tool raised {bounded(outcome.error)}")
        return outcome.content


class _Told:
    """Tells of a reply as it comes.

    Attributes:
        begun: Whether a piece has come.
    """

    begun = False

    def __call__(self, event: StreamEvent) -> None:
        self.begun = True
        emit(event)
