"""Where a prompt stops agreeing with the one before it, in words, and which handler says that it may do that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from effectful_agents.handlers.observability.context_economy.prompts import (
    CODE_TOOLS,
    Definition,
    Prompt,
    Said,
    meeting,
)
from effectful_agents.handlers.observability.context_economy.turns import PrefixBreak, Section
from effectful_agents.messages.text import text_for_reading
from effectful_agents.operations.recorded import difference

__all__ = ["compared"]

_SUMMARY = "(A summary of the conversation before"
"""What a message begins with that took the place of others, so that the model knows it for what it is."""


def compared(
    before: Prompt, now: Prompt, earlier: int | None = None, refused: Set[int] = frozenset(), kept: int = 0
) -> tuple[int, PrefixBreak | None]:
    """How many tokens at the beginning of a prompt are those of one before, and what broke it, if something did.

    A provider reads the tools first, then the form of the answer, then the messages, and keeps that for each model.

    Args:
        before: The prompt before.
        now: The prompt.
        earlier: How many messages the two ought to share, where they are of different calls: those of earlier calls
            and the system message. None for turns of one call, which share all.
        refused: Identities of the messages after which there was a reply that was not taken.
        kept: How many tokens at its beginning are those of any prompt before, where that is known.
    """
    agreed, found = _parts(before, now)
    if found is None:
        meet, was, is_ = meeting(before.end, now.end)
        same = _same_sections(was, is_)
        agreed += meet.tokens + sum(tokens for *_, tokens in same)
        goes_on = was is None or (earlier is not None and meet.place >= earlier)
        found = None if goes_on else _of_messages(now, (meet, was, is_), len(same), refused)
    agreed = max(agreed, kept)
    if found is None:
        return agreed, None
    part, where, how, by = found
    whole = _tokens(before)
    return agreed, PrefixBreak(part=part, where=where, how=how, by=by, lost=max(0, whole - agreed))


type _Found = tuple[str, str, str, str]
"""The part, where it differs, how, and who may do that."""


def _tokens(prompt: Prompt) -> int:
    form = 0 if prompt.form is None else prompt.form.counted.tokens
    return sum(tool.counted.tokens for tool in prompt.tools) + form + prompt.end.tokens


def _parts(before: Prompt, now: Prompt) -> tuple[int, _Found | None]:
    """What comes before the messages: the tokens that agree, and the first difference."""
    if before.model and now.model and before.model != now.model:
        how = difference(before.model, now.model, "it").removeprefix("it ")
        return 0, ("model", "the model", how, "Fallback")
    agreed = 0
    if before.tools is not now.tools:
        for was, is_ in zip(before.tools, now.tools, strict=False):
            if was.text != is_.text:
                return agreed, _of_tools(before.tools, now.tools)
            agreed += is_.counted.tokens
        if len(before.tools) != len(now.tools):
            return agreed, _of_tools(before.tools, now.tools)
    else:
        agreed = sum(tool.counted.tokens for tool in now.tools)
    was, is_ = (None if form is None else form.data for form in (before.form, now.form))
    if was != is_:
        how = "there was none" if was is None else "there is none now" if is_ is None else difference(was, is_)
        return agreed, (Section.FORM.value, "the form of the answer", how, "")
    return agreed + (0 if now.form is None else now.form.counted.tokens), None


def _of_tools(before: Sequence[Definition], now: Sequence[Definition]) -> _Found:
    was, is_ = ({tool.name: tool for tool in tools} for tools in (before, now))
    gone, new = [name for name in was if name not in is_], [name for name in is_ if name not in was]
    both = next((name for name in is_ if name in was and was[name].text != is_[name].text), None)
    if not gone and not new and both is not None:
        how = difference(was[both].data, is_[both].data).removeprefix("function.")
        return Section.TOOLS.value, f"the tool `{both}`", how, ""
    if not gone and not new:
        return Section.TOOLS.value, "the tools", "they are in another order", ""
    by = "DeferredTools" if "search_tools" in new else "ToolRouter" if gone else ""
    how = [f"{_named(gone)} not offered any more"] if gone else []
    how += [f"{_named(new)} offered now"] if new else []
    return Section.TOOLS.value, "the tools", " and ".join(how), by


def _named(names: Sequence[str]) -> str:
    shown = [f"`{name}`" for name in names[:3]] + ([f"{len(names) - 3} more"] if len(names) > 3 else [])
    return f"{', '.join(shown)} {'is' if len(names) == 1 else 'are'}"


# --- messages ---------------------------------------------------------------------------------------------------------


def _same_sections(was: Said | None, is_: Said | None) -> list[tuple[str, Any, int]]:
    """The sections at the beginning of two system messages that agree."""
    if was is None or is_ is None or was.place > 1 or is_.place > 1:
        return []
    same = []
    for one, other in zip(was.system, is_.system, strict=False):
        if one != other:
            break
        same.append(one)
    return same


def _of_messages(now: Prompt, met: tuple[Said, Said | None, Said | None], same: int, refused: Set[int]) -> _Found:
    meet, was, is_ = met
    assert was is not None
    if was.place == 1 and was.system:
        return _of_system(was, is_, same)
    where = f"message {was.place} ({_what(was)})"
    if id(meet) in refused:
        return Section.REPLIES.value, where, "a reply that was refused is not there any more", "TenacityRetryer"
    if is_ is None:
        return _part(was), where, "it is not there any more", ""
    if is_.role == "user" and text_for_reading(is_.message.get("content")).startswith(_SUMMARY):
        return _part(was), where, "it and what came after gave way to a summary", "HistoryCompactor"
    if (tool := _compacting(is_, now.end)) is not None:
        return _part(was), where, f"a call of `{tool}` had earlier messages dropped", tool
    return _part(was), where, difference(was.message, is_.message), ""


def _of_system(was: Said, is_: Said | None, same: int) -> _Found:
    if is_ is None or not is_.system:
        return Section.SYSTEM.value, "the system message", "it is not there any more", ""
    one = was.system[same] if same < len(was.system) else None
    other = is_.system[same] if same < len(is_.system) else None
    titles = [None if section is None else section[0] for section in (one, other)]
    title = titles[0] or titles[1] or ""
    where = f"the section `{title}` of the system message"
    if one is None:
        return Section.SYSTEM.value, where, "it was not there", ""
    if other is None or titles[0] != titles[1]:
        how = "it is not there any more" if other is None else f"`{titles[1]}` is in its place"
        return Section.SYSTEM.value, where, how, ""
    return Section.SYSTEM.value, where, difference(one[1], other[1], "it").removeprefix("it "), ""


def _compacting(is_: Said, end: Said) -> str | None:
    """The tool that was asked to drop messages in the first turn that is not as it was."""
    here: Said | None = end
    while here is not None and here.place >= is_.place:
        for call in here.message.get("tool_calls") or ():
            function: Mapping[str, Any] = call.get("function", {})
            if function.get("name") in CODE_TOOLS and '"compact"' in str(function.get("arguments")):
                return str(function["name"])
        here = here.before
    return None


def _part(said: Said) -> str:
    return _ROLES.get(said.role, Section.USER).value


_ROLES: Mapping[str, Section] = {
    "system": Section.SYSTEM,
    "developer": Section.SYSTEM,
    "assistant": Section.REPLIES,
    "tool": Section.RESULTS,
    "function": Section.RESULTS,
}


def _what(said: Said) -> str:
    if said.role in ("tool", "function"):
        return f"the result of `{said.tool}`"
    return {"assistant": "a reply", "user": "what the user said"}.get(said.role, said.role)
