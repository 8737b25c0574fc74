"""The gateway's side: performing under its own handlers what a program asks for."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

from effectful_agents.encoding import dumps, tool_codec
from effectful_agents.encoding.questions import shown_arguments
from effectful_agents.errors import Denied, StepDenied, ToolCallExecutionError
from effectful_agents.handlers.delegation.seam.failures import bounded
from effectful_agents.handlers.delegation.seam.gateway import BadRequest, UnknownToolRef
from effectful_agents.handlers.delegation.seam.permits import Permits
from effectful_agents.handlers.delegation.seam.refs import ref_of
from effectful_agents.handlers.delegation.seam.settings import checked_request
from effectful_agents.handlers.delegation.seam.versions import negotiate
from effectful_agents.messages import Response, StreamEvent, ToolDefinition
from effectful_agents.operations.authority import authorize
from effectful_agents.operations.call_context import current_call_context
from effectful_agents.operations.calls_by_code import carrying_out
from effectful_agents.operations.effects import bound_to, effect_of_call, effect_of_request, risk_of
from effectful_agents.operations.elsewhere import (
    CallContext,
    DescribedCall,
    DescribedEffect,
    Hello,
    PermittedDecision,
    ToolDeclaration,
    ToolOutcome,
    Welcome,
)
from effectful_agents.operations.loop import DecodedToolCall, call_tool, model_in_use
from effectful_agents.operations.policy import (
    Decision,
    Disposition,
    EffectKind,
    ProposedEffect,
    decide,
    enforced,
    is_decided,
    judged,
    request_approval,
)
from effectful_agents.operations.steps import emit
from effectful_agents.operations.usage import answered
from effectful_agents.runtime import Interpretation, Layers, handler, interpretation
from effectful_agents.types import Tool

__all__ = ["PerformingGateway", "declaration_of"]

_log = logging.getLogger(__name__)

# Characters.
_LARGEST_DEFINITION = 1_000_000
_SIZE_OF_DEFINITIONS = 16_000_000
_NOBODY = Decision(
    Disposition.DENY_STEP,
    "not_answered",
    "A person has to approve it, whom the gateway does not ask, and it does not take the program's word for it.",
)


class PerformingGateway:
    """Performs what one program asks for, inside of the handlers that are installed where its methods are called.

    `StackGateway` is the same without those.

    Args:
        *handlers: As with `StackGateway`; so are the others.
        tools: The tools that it holds.
        approves: Whether the program's people may approve.
        models: The models that may be asked.
        settings: More settings that requests may have.
    """

    def __init__(
        self,
        *handlers: Interpretation,
        tools: Collection[Tool[..., Any]] = (),
        approves: bool = False,
        models: Collection[str] | None = None,
        settings: Collection[str] = (),
    ) -> None:
        self._stack = Layers(*handlers)
        self._held = {ref_of(one.definition): (tool, one) for tool in tools for one in [declaration_of(tool)]}
        self._approves = approves
        self._models = models
        self._settings = frozenset(settings)
        # The program's tools by reference, the ones that were used last at the end.
        self._known: OrderedDict[str, tuple[ToolDefinition, int]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()
        self._permits = Permits()

    def hello(self, hello: Hello, context: CallContext) -> Welcome:
        version = negotiate(hello.versions)
        refs = {definition["function"]["name"]: ref_of(definition) for definition in hello.tools}
        self._keep(hello.tools)
        with handler(self._stack):
            model, decides = model_in_use() or "", decide in interpretation()
        held = tuple(declared for _, declared in self._held.values())
        return Welcome(version=version, tool_refs=refs, tools=held, model=model, decides=decides)

    def completion(
        self,
        request: Mapping[str, Any],
        context: CallContext,
        *,
        tell: Callable[[StreamEvent], None] | None = None,
        permit: str = "",
    ) -> Response:
        asked = cast(Any, checked_request(request, self._settings))
        if "tools" in asked:
            asked["tools"] = [self._definition(tool) for tool in asked["tools"]]
        with self._performing(context):
            effect = effect_of_request(asked, model_in_use() or "")
            self._check_model(effect.name)
            self._enforced(effect, permit)
            if tell is None:
                return answered(asked)
            with handler({emit: tell}):
                return answered(asked)

    def decide(self, effect: DescribedEffect, context: CallContext) -> PermittedDecision:
        with self._performing(context):
            if not is_decided():
                return PermittedDecision()
            return self._permitted(self._proposed(effect), held=bool(effect.ref))

    def call_tool(self, call: DescribedCall, context: CallContext) -> ToolOutcome:
        tool, declared = self._tool(call.ref)
        try:
            bound = tool_codec(tool).decode(dict(call.arguments))
        except ValueError as error:
            return ToolOutcome(error=bounded(error))
        with self._performing(context):
            effect = dataclasses.replace(effect_of_call(tool, bound), run_id=call.run_id)
            effect = self._enforced(effect, call.permit)
            bound = bound_to(bound.signature, effect.arguments)
            made = DecodedToolCall(tool, bound, "call", declared.name)
            with carrying_out(tool):
                return _outcome(made)

    def _performing(self, context: CallContext) -> Any:
        return handler(Layers(self._stack, {current_call_context: lambda: context}))

    def _keep(self, definitions: Sequence[ToolDefinition]) -> None:
        """Keep the definitions of tools. Who says hello for ever with other ones has the oldest forgotten."""
        for definition in definitions:
            ref, size = ref_of(definition), len(json.dumps(definition))
            if size > _LARGEST_DEFINITION:
                name = bounded(definition["function"]["name"])
                raise BadRequest(f"the definition of the tool `{name}` has {size:,} characters; it is too large.")
            with self._lock:
                self._size += size - self._known.pop(ref, (None, 0))[1]
                self._known[ref] = definition, size
                while self._size > _SIZE_OF_DEFINITIONS:
                    self._size -= self._known.popitem(last=False)[1][1]

    # --- tools --------------------------------------------------------------------------------------------------------

    def _definition(self, tool: Any) -> Any:
        ref = tool.get("ref") if isinstance(tool, Mapping) else None
        if ref is None:
            # One of a service, such as a search: it has no schema.
            return tool
        with self._lock:
            known = self._known.get(ref) if isinstance(ref, str) else None
            if known is not None:
                self._known.move_to_end(ref)
        if known is None:
            raise UnknownToolRef("the request names a tool that was not registered here, or too long ago.")
        return known[0]

    def _tool(self, ref: str) -> tuple[Tool[..., Any], ToolDeclaration]:
        held = self._held.get(ref)
        if held is None:
            raise UnknownToolRef("the gateway holds no such tool, or it is no longer what the program was told.")
        return held

    # --- deciding -----------------------------------------------------------------------------------------------------

    def _check_model(self, model: str) -> None:
        if self._models is not None and model not in self._models:
            raise Denied(
                Decision(Disposition.TERMINATE_RUN, "model_not_allowed", "This program may not ask the model.")
            )

    def _proposed(self, effect: DescribedEffect) -> ProposedEffect:
        """The effect as policies here see it. Of a tool that the program has they know what the program says."""
        place = {"step_id": effect.step_id, "run_id": effect.run_id, "again": effect.again}
        if effect.ref:
            tool, _ = self._tool(effect.ref)
            try:
                bound = tool_codec(tool).decode(dict(effect.arguments))
            except ValueError as error:
                raise BadRequest(f"the arguments do not fit the tool: {bounded(error)}") from error
            return dataclasses.replace(effect_of_call(tool, bound), by_code=effect.by_code, **cast(Any, place))
        try:
            kind = EffectKind(effect.kind)
        except ValueError:
            raise BadRequest("the gateway was asked about an effect of a kind that it does not know.") from None
        return ProposedEffect(
            kind=kind,
            name=bounded(effect.name),
            arguments=effect.arguments,
            risk=effect.risk,
            receiver=bounded(effect.receiver),
            by_code=effect.by_code,
            **cast(Any, place),
        )

    def _permitted(self, effect: ProposedEffect, *, held: bool) -> PermittedDecision:
        """What is decided, with a permit where the tool will be called here."""
        try:
            allowed = self._authorized(effect)
        except (StepDenied, Denied) as error:
            decision = error.decision
        else:
            decision = Decision(arguments=_amended(effect, allowed))
            effect = allowed
        may_come = held and decision.disposition in (Disposition.ALLOW, Disposition.REQUIRE_APPROVAL)
        return _with_permit(decision, self._permits.give(_about(effect)) if may_come else "")

    def _enforced(self, effect: ProposedEffect, permit: str) -> ProposedEffect:
        """The effect as it may happen here.

        Raises:
            Denied: It may not.
        """
        if not is_decided() or (permit and self._permits.take(permit, _about(effect))):
            return effect
        try:
            return self._authorized(effect)
        except StepDenied as error:
            decision = error.decision
        if decision.disposition is Disposition.REQUIRE_APPROVAL:
            decision = _with_permit(decision, self._permits.give(_about(effect)))
        raise Denied(decision)

    def _authorized(self, effect: ProposedEffect) -> ProposedEffect:
        """Have it decided. Where a person has to approve, and nobody is asked here, that is the decision.

        Raises:
            StepDenied: It may not happen, or not without the approval of somebody of the program's.
            Denied: It may not happen, and the program's call ends.
        """
        if request_approval in interpretation():
            return authorize(effect)
        effect, decision = judged(effect)
        if decision.disposition is Disposition.REQUIRE_APPROVAL:
            if self._approves:
                raise StepDenied(decision)
            _log.warning("`%s` needs an approval, and nobody is asked for it", effect.name or effect.kind)
            decision = dataclasses.replace(_NOBODY, rule=decision.rule)
        enforced(effect, decision)
        return effect


def declaration_of(tool: Tool[..., Any]) -> ToolDeclaration:
    """What a program is told of a tool.

    Raises:
        EncodingError: A parameter cannot be described.
    """
    definition = tool_codec(tool).definition(tool.__name__)
    return ToolDeclaration(
        definition=definition,
        risk=risk_of(tool),
        effect=tool.effect,
        concurrent=tool.concurrent or tool.is_async,
        timeout=tool.timeout,
    )


def _about(effect: ProposedEffect) -> str:
    """What stands for an effect: equal for what was decided about and what is done."""
    what = shown_arguments(effect) if effect.request is None else effect.request
    return hashlib.blake2b(dumps([effect.kind, effect.name, what]).encode("utf-8", "replace")).hexdigest()


def _amended(asked: ProposedEffect, allowed: ProposedEffect) -> dict[str, Any] | None:
    """The arguments that were changed, as JSON."""
    changed = {name for name, value in allowed.arguments.items() if asked.arguments.get(name) is not value}
    return {name: value for name, value in shown_arguments(allowed).items() if name in changed} or None


def _with_permit(decision: Decision, permit: str) -> PermittedDecision:
    return PermittedDecision(
        decision.disposition,
        decision.reason_code,
        decision.message,
        rule=decision.rule,
        arguments=decision.arguments,
        permit=permit,
    )


def _outcome(call: DecodedToolCall[Any]) -> ToolOutcome:
    try:
        message, value, _ = call_tool(call)
    except ToolCallExecutionError as error:
        message, value = None, error
    if isinstance(value, ToolCallExecutionError):
        original = value.original_error
        if isinstance(original, Denied | StepDenied):
            raise original
        return ToolOutcome(error=bounded(f"{type(original).__name__}: {original}"))
    return ToolOutcome(content=message["content"] if message else "")
