"""The economy of a run as a picture: SVG, written by hand so that nothing has to be installed for it."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from effectful_agents.handlers.observability.context_economy.turns import Section, TurnEconomy, TurnOutcome

if TYPE_CHECKING:
    from effectful_agents.handlers.observability.context_economy.whole import ContextEconomy

__all__ = ["drawn"]

_WIDTH, _HEIGHT = 960, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 112, 52
_BARS = 200
"""Bars that can be told apart at this width. Of more turns, neighbours share one, which shows their mean."""

_COLORS = {
    Section.TOOLS: "#0072b2",
    Section.FORM: "#56b4e9",
    Section.SYSTEM: "#009e73",
    Section.EARLIER: "#999999",
    Section.USER: "#e69f00",
    Section.REPLIES: "#cc79a7",
    Section.RESULTS: "#d55e00",
}
"""Those of Okabe and Ito, which people who see fewer colors tell apart; they hold on light and on dark ground."""

_INK, _GROUND = "#24292f", "#ffffff"
_DARK = """\
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}
.ground{fill:#0d1117}
.rule{stroke:#30363d}
.ink{stroke:#e6edf3;fill:#e6edf3}
.stripe{stroke:#0d1117}
.open{stroke:#e6edf3}
}"""
"""What is different on dark ground. The colors on light ground are attributes, for viewers that read no styles."""


def drawn(economy: ContextEconomy) -> str:
    """The picture: a bar for each turn, with the parts of its prompt on top of each other.

    What a provider reads first is at the bottom, so what it had in its cache is the lower part: it is striped, as far
    as was reported. A triangle marks a turn whose prompt does not go on from the one before it.
    """
    return "\n".join(_Picture(economy).lines()) + "\n"


@dataclasses.dataclass(frozen=True)
class _Bar:
    """What one bar shows."""

    label: str
    told: str
    parts: Sequence[tuple[Section, float]]
    cached: float
    """The share that is striped."""
    broken: bool
    open: bool
    """Whether no turn of it had a reply."""
    refused: bool

    @property
    def height(self) -> float:
        return sum(tokens for _, tokens in self.parts)


class _Picture:
    def __init__(self, economy: ContextEconomy) -> None:
        self._economy = economy
        self._together = max(1, -(-len(economy.turns) // _BARS))
        self._bars = [_bar(group) for group in self._groups()]
        self._highest = _round_up(max((bar.height for bar in self._bars), default=0))
        turns = "\n".join(f"{turn.step_id} {turn.tokens}" for turn in economy.turns)
        # Several pictures may stand in one page, where identifiers are shared.
        self._id = "e" + hashlib.blake2b(f"{economy.run_id!a}\n{turns!a}".encode(), digest_size=4).hexdigest()

    def _groups(self) -> Iterator[Sequence[tuple[int, TurnEconomy]]]:
        numbered = list(enumerate(self._economy.turns, 1))
        for place in range(0, len(numbered), self._together):
            yield numbered[place : place + self._together]

    def lines(self) -> Iterator[str]:
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
            f'height="{_HEIGHT}" font-family="system-ui,sans-serif" font-size="12" fill="{_INK}" role="img" '
            f'aria-labelledby="{self._id}-title {self._id}-desc">'
        )
        name = f"Tokens of the prompts{f' of {self._economy.run_id}' if self._economy.run_id else ''}"
        yield f'<title id="{self._id}-title">{_escaped(name)}</title>'
        yield f'<desc id="{self._id}-desc">{_escaped(self._description())}</desc>'
        yield f"<style>{_DARK}</style>"
        yield (
            f'<defs><pattern id="{self._id}-cached" width="6" height="6" patternUnits="userSpaceOnUse" '
            f'patternTransform="rotate(45)"><line class="stripe" x1="0" y1="0" x2="0" y2="6" stroke="{_GROUND}" '
            'stroke-width="2" stroke-opacity=".75"/></pattern></defs>'
        )
        yield f'<rect class="ground" fill="{_GROUND}" width="{_WIDTH}" height="{_HEIGHT}"/>'
        yield f'<text font-size="15" font-weight="600" x="{_LEFT}" y="26">{_escaped(_cut(name, 90))}</text>'
        yield from self._legend()
        yield from self._axis()
        for place, bar in enumerate(self._bars):
            yield from self._drawn(place, bar)
        yield "</svg>"

    def _description(self) -> str:
        whole = self._economy
        parts = ", ".join(f"{section.value} {tokens:,}" for section, tokens in whole.sections.items())
        cached = f" Served from a cache: {whole.cached:.0%}." if whole.cached is not None else ""
        several = f" Each bar is the mean of up to {self._together} turns." if self._together > 1 else ""
        return (
            f"Turns with a reply: {len(whole.counted)}, without: {len(whole.attempted)}. "
            f"Tokens by part of those with a reply: {parts or 'none'}.{cached} "
            f"Turns where the prefix broke: {len(whole.breaks)}.{several}"
        )

    # --- around the bars ----------------------------------------------------------------------------------------------

    def _legend(self) -> Iterator[str]:
        x, y = _LEFT, 44
        there = [section for section in Section if any(section in turn.sections for turn in self._economy.turns)]
        for section in there:
            yield f'<rect x="{x}" y="{y}" width="12" height="12" fill="{_COLORS[section]}"/>'
            yield f'<text x="{x + 17}" y="{y + 10}">{_escaped(section.value)}</text>'
            x += _room(section.value)
        x, y = _LEFT, 66
        if any(bar.cached for bar in self._bars):
            yield f'<rect x="{x}" y="{y}" width="12" height="12" fill="{_COLORS[Section.EARLIER]}"/>'
            yield f'<rect x="{x}" y="{y}" width="12" height="12" fill="url(#{self._id}-cached)"/>'
            text = "served from a cache, as reported"
            yield f'<text x="{x + 17}" y="{y + 10}">{text}</text>'
            x += _room(text)
        marks: list[tuple[bool, Callable[[float], str], str]] = [
            (any(bar.broken for bar in self._bars), lambda x: _triangle(x + 6, y + 2), "the prefix broke"),
            (any(bar.refused for bar in self._bars), lambda x: _cross(x + 6, y + 6), "the reply was refused"),
            (any(bar.open for bar in self._bars), lambda x: _frame(x, y, 12, 12), "no reply: in no sum"),
        ]
        for is_there, mark, text in marks:
            if is_there:
                yield mark(x)
                yield f'<text x="{x + 17}" y="{y + 10}">{text}</text>'
                x += _room(text)

    def _axis(self) -> Iterator[str]:
        for quarter in range(5):
            tokens = self._highest * quarter / 4
            y = self._y(tokens)
            ends = f'x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}"'
            yield f'<line class="rule" stroke="#d0d7de" {ends}/>'
            yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tokens:,.0f}</text>'
        every = max(1, -(-len(self._bars) // 20))
        for place, bar in enumerate(self._bars):
            if place % every == 0:
                x, width = self._x(place)
                y = _HEIGHT - _BOTTOM + 18
                yield f'<text x="{x + width / 2:.1f}" y="{y}" text-anchor="middle">{bar.label}</text>'
        middle = (_LEFT + _WIDTH - _RIGHT) / 2
        yield f'<text x="{middle:.1f}" y="{_HEIGHT - 12}" text-anchor="middle">turn</text>'

    # --- a bar --------------------------------------------------------------------------------------------------------

    def _drawn(self, place: int, bar: _Bar) -> Iterator[str]:
        x, width = self._x(place)
        yield f"<g><title>{_escaped(bar.told)}</title>"
        bottom = 0.0
        opacity = ' fill-opacity=".25"' if bar.open else ""
        for section, tokens in bar.parts:
            top = bottom + tokens
            yield (
                f'<rect x="{x:.1f}" y="{self._y(top):.1f}" width="{width:.1f}" '
                f'height="{self._y(bottom) - self._y(top):.1f}" fill="{_COLORS[section]}"{opacity}/>'
            )
            bottom = top
        y, ground = self._y(bottom), self._y(0)
        if bar.cached:
            at = self._y(bottom * bar.cached)
            yield (
                f'<rect x="{x:.1f}" y="{at:.1f}" width="{width:.1f}" height="{ground - at:.1f}" '
                f'fill="url(#{self._id}-cached)"/>'
            )
            yield _ink(f"M{x:.1f} {at:.1f}h{width:.1f}")
        if bar.open:
            yield _frame(x, y, width, ground - y)
        if bar.broken:
            yield _triangle(x + width / 2, y - 12)
        if bar.refused:
            yield _cross(x + width / 2, y - (24 if bar.broken else 8))
        yield "</g>"

    def _x(self, place: int) -> tuple[float, float]:
        """Where a bar begins, and how wide it is."""
        step = min(100.0, (_WIDTH - _LEFT - _RIGHT) / max(1, len(self._bars)))
        return _LEFT + place * step + step * 0.1, step * 0.8

    def _y(self, tokens: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * tokens / self._highest


def _bar(group: Sequence[tuple[int, TurnEconomy]]) -> _Bar:
    turns = [turn for _, turn in group]
    known = [turn for turn in turns if turn.cached is not None]
    read = sum(turn.tokens for turn in known)
    cached = sum(turn.tokens * (turn.cached or 0.0) for turn in known)
    parts = [
        (section, sum(turn.sections.get(section, 0) for turn in turns) / len(turns))
        for section in Section
        if any(section in turn.sections for turn in turns)
    ]
    return _Bar(
        label=f"{group[0][0]}",
        told="\n".join(_told(number, turn) for number, turn in group),
        parts=parts,
        cached=cached / read if read else 0.0,
        broken=any(turn.broken for turn in turns),
        open=not any(turn.is_counted for turn in turns),
        refused=any(turn.outcome is TurnOutcome.REFUSED for turn in turns),
    )


def _told(number: int, turn: TurnEconomy) -> str:
    facts = [f"turn {number}, {turn.skill}: {turn.tokens:,} tokens"]
    if turn.outcome is not TurnOutcome.REPLIED:
        facts.append(turn.outcome.value)
    if turn.cached is not None:
        facts.append(f"{turn.cached:.0%} from a cache")
    if turn.broken is not None:
        facts.append(f"the prefix broke at {turn.broken}")
    return ", ".join(facts)


def _triangle(x: float, y: float) -> str:
    return _ink(f"M{x - 5:.1f} {y:.1f}h10l-5 8z")


def _cross(x: float, y: float) -> str:
    return _ink(f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8", width=2)


def _ink(path: str, width: int = 1) -> str:
    return f'<path class="ink" stroke="{_INK}" stroke-width="{width}" d="{path}"/>'


def _frame(x: float, y: float, width: float, height: float) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="open" fill="none" stroke="{_INK}" stroke-dasharray="3 2" {place}/>'


def _round_up(tokens: float) -> float:
    """The next number that reads well on an axis of four parts."""
    size = 4.0
    while size < tokens:
        for factor in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8):
            if size * factor >= tokens:
                return size * factor
        size *= 10
    return size


_UNWRITABLE = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML has no form for, not even escaped."""


def _escaped(text: str) -> str:
    text = _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _room(text: str) -> int:
    """How wide a mark and the text beside it may be, in a font that nobody knows here."""
    return 32 + round(7.5 * len(text))


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
