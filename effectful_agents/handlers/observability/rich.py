"""Showing conversations on a terminal while they grow."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.text import Text as Line

from effectful_agents.handlers.observability.panels import (
    Framed,
    content_text,
    first_message,
    framed,
    gist,
    pretty,
    reasoning_text,
    styled,
    tool_calls,
)
from effectful_agents.messages import (
    Message,
    PromptProgress,
    ReasoningDelta,
    Response,
    StreamEvent,
    StreamStart,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from effectful_agents.operations.loop import completion
from effectful_agents.operations.steps import emit
from effectful_agents.runtime import ObjectInterpretation, fwd, implements

__all__ = ["RichTerminalRenderer"]

_log = logging.getLogger(__name__)

_INTERVAL = 0.1
"""Seconds between two drawings of a reply that is being written."""
_DRAFT = 20_000
"""Characters that are kept of each part of such a reply: more than a screen shows."""
_CONVERSATIONS = 512
_MESSAGES = 64
"""How many conversations are remembered, and of each how many messages and replies."""

_STYLES = {"system": "bright_black", "user": "cyan", "assistant": "green", "tool": "yellow"}


class RichTerminalRenderer(ObjectInterpretation[Any, Any]):
    """Print each message of a conversation once, as a panel, and draw the reply that is being written.

    Wraps `completion` and listens to `emit`. Before a request goes out, those of its messages are printed that the
    conversation has reached since its last request; afterwards the reply is. A reply that comes as a stream is drawn
    while it comes, and only that part of the screen is drawn again. It is never taller than the screen, where the end
    of a long reply shows. One reply at a time is drawn: those of calls that run beside it are printed when they are
    complete, and nobody waits. What a model writes is shown as text, whatever it looks like.

    Conversations are numbered, since several may run at once. A system message that was printed already, word for
    word, is not printed again for the next one. Nothing at all is shown where the console is no terminal.

    Stands inside the handler that asks the model, and outside of those that change messages on their way, which would
    be new ones each time.

    Args:
        console: Where to show it; standard output by default.

    >>> import io
    >>> from effectful_agents import handler
    >>> from effectful_agents.testing import ScriptedModel
    >>> console = Console(file=io.StringIO(), force_terminal=True, width=24, color_system=None)
    >>> with handler(ScriptedModel("Hello!")), handler(RichTerminalRenderer(console)):
    ...     reply = completion(messages=[{"role": "user", "content": "Hi"}])
    >>> print(console.file.getvalue()[: 24 * 3 + 3])
    ╭─ user ───────────────╮
    │ Hi                   │
    ╰──────────────────────╯
    <BLANKLINE>
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console()
        # Held while something is written, and never while an operation is performed. An exception that is thrown into
        # an abandoned call may come in the middle of that, in the same thread.
        self._lock = threading.RLock()
        self._drawn: _Turn | None = None
        self._conversations: OrderedDict[int, _Conversation] = OrderedDict()
        self._count = 0
        self._system_messages: deque[int] = deque(maxlen=_MESSAGES)

    @implements(completion)
    def completion(self, **request: Any) -> Response:
        messages: Sequence[Message] = request.get("messages") or ()
        last = messages[-1] if messages else None
        outer = _turn.get()
        # Of several renderers the innermost shows a request; the others see the same one.
        if not self.console.is_terminal or (outer is not None and outer.last is last):
            return fwd()
        turn = _Turn(self, last, self._conversation(messages))
        reply: Response | None = None
        self._begin(turn, messages)
        # Not a token's `reset`: it raises where a greenlet was given another context meanwhile.
        _turn.set(turn)
        try:
            reply = fwd()
            return reply
        finally:
            _turn.set(outer)
            self._end(turn, reply)

    @implements(emit)
    def emit(self, event: StreamEvent) -> None:
        turn = _turn.get()
        if turn is not None and turn.renderer is self:
            turn.draft.add(event)
            due = time.monotonic() - turn.drawn_at >= _INTERVAL
            # Whatever is no piece of something longer shows at once: nothing may follow it for a while.
            if turn.live is not None and (due or not isinstance(event, TextDelta | ReasoningDelta | ToolCallDelta)):
                self._draw(turn)
        fwd()

    def _conversation(self, messages: Sequence[Message]) -> _Conversation:
        """What is known of a conversation. It is told by the object that its first message is."""
        head = messages[0] if messages else None
        with self._lock:
            found = self._conversations.get(id(head))
            if found is None:
                self._count += 1
                found = _Conversation(head, self._count)
                if head is not None:
                    self._conversations[id(head)] = found
                if len(self._conversations) > _CONVERSATIONS:
                    self._conversations.popitem(last=False)
            else:
                self._conversations.move_to_end(id(head))
            return found

    @contextlib.contextmanager
    def _writing(self) -> Generator[None]:
        """Write all that the block prints at once. Nothing that cannot be shown ends the call, or hides its error."""
        try:
            with self._lock, self.console:
                yield
        except OSError:
            pass  # the terminal is gone
        except Exception as error:
            if not getattr(self.console.file, "closed", False):
                _log.warning("a part of a conversation cannot be shown: %s: %s", type(error).__name__, error)

    def _begin(self, turn: _Turn, messages: Sequence[Message]) -> None:
        with self._writing():
            names: dict[str, str] = {}
            for message, is_new in turn.conversation.behind_the_known(messages):
                names |= {identifier: name for identifier, name, _ in tool_calls(message)}
                if is_new and not (message["role"] == "system" and self._repeats(message)):
                    self.console.print(_panel(message, turn.conversation, names, self.console.width))
            if self._drawn is None:
                self._drawn = turn
                # What others print meanwhile is left alone: rich would take `sys.stdout` away from them, and could
                # give it back wrong where they do the same.
                turn.live = Live(
                    _Frame(turn),
                    console=self.console,
                    auto_refresh=False,
                    transient=True,
                    redirect_stdout=False,
                    redirect_stderr=False,
                )
                turn.live.start(refresh=True)

    def _repeats(self, message: Message) -> bool:
        digest = hash(content_text(message))
        if digest in self._system_messages:
            return True
        self._system_messages.append(digest)
        return False

    def _draw(self, turn: _Turn) -> None:
        with self._writing():
            if turn.live is not None:
                turn.drawn_at = time.monotonic()
                turn.live.refresh()

    def _end(self, turn: _Turn, reply: Response | None) -> None:
        with self._writing():
            try:
                if turn.live is not None:
                    turn.live.stop()
            finally:
                if self._drawn is turn:
                    self._drawn, turn.live = None, None
            if reply is not None:
                message = first_message(reply)
                turn.conversation.replies.append(gist(message))
                self.console.print(_panel(message, turn.conversation, {}, self.console.width))
            elif turn.draft:
                self.console.print(turn.draft.panel(f"{turn.conversation.title('assistant')}, broken off"))


@dataclasses.dataclass(eq=False)
class _Conversation:
    """What was printed of a conversation: its last messages, and replies that have not joined it yet.

    Messages are told by the objects that they are, and kept so that no other object takes the place of one.
    """

    head: Message | None
    number: int
    known: dict[int, Message] = dataclasses.field(default_factory=dict)
    replies: deque[tuple[str, ...]] = dataclasses.field(default_factory=lambda: deque(maxlen=_MESSAGES))

    def title(self, role: str) -> str:
        return role if self.number == 1 else f"{role} #{self.number}"

    def behind_the_known(self, messages: Sequence[Message]) -> list[tuple[Message, bool]]:
        """The messages behind the last one that is known, and whether each was not printed as a reply before."""
        # From the end, so that earlier turns cost nothing. The attempts of a retry may have vanished from there.
        first, start = (1 if self.known else 0), len(messages)
        while start > first and id(messages[start - 1]) not in self.known:
            start -= 1
        found = []
        for message in messages[start:]:
            is_new = not (message["role"] == "assistant" and self._was_reply(message))
            found.append((message, is_new))
            self.known[id(message)] = message
        while len(self.known) > _MESSAGES:
            del self.known[next(iter(self.known))]
        return found

    def _was_reply(self, message: Message) -> bool:
        # The history has it as another object than the reply, with other identifiers and arguments in normal form.
        with contextlib.suppress(ValueError):
            self.replies.remove(gist(message))
            return True
        return False


class _Draft:
    """What has come of a reply so far."""

    def __init__(self) -> None:
        self.status = "asking the model…"
        self.parts: dict[tuple[str, int], str] = {}

    def __bool__(self) -> bool:
        return bool(self.parts)

    def add(self, event: StreamEvent) -> None:
        match event:
            case StreamStart():  # of a request that is sent again, too
                self.parts, self.status = {}, "waiting…"
            case PromptProgress("loading"):
                self.status = "loading the model…"
            case PromptProgress("reading", done, total):
                self.status = f"reading… {done} of {total} tokens"
            case ReasoningDelta(piece, index):
                self._append("reasoning", index, piece)
            case TextDelta(piece, index):
                self._append("text", index, piece)
            case ToolCallStart(name=name, index=index):
                self._append("call", index, f"{name} ")
            case ToolCallDelta(piece, index):
                self._append("call", index, piece)

    def _append(self, kind: str, index: int, piece: str) -> None:
        self.parts[kind, index] = (self.parts.get((kind, index), "") + piece)[-_DRAFT:]

    def panel(self, title: str) -> Framed:
        # A copy: another thread may add to it.
        lines = [styled(text, "dim" if kind == "reasoning" else "") for (kind, _), text in list(self.parts.items())]
        return framed(lines or [styled(self.status, "dim")], title, "dim green")


@dataclasses.dataclass(eq=False)
class _Turn:
    """A request that is under way."""

    renderer: RichTerminalRenderer
    last: Message | None
    conversation: _Conversation
    draft: _Draft = dataclasses.field(default_factory=_Draft)
    live: Live | None = None
    drawn_at: float = 0.0


_turn: contextvars.ContextVar[_Turn | None] = contextvars.ContextVar("_turn", default=None)


class _Frame:
    """The reply that is being written; of one that is taller than the screen the end."""

    def __init__(self, turn: _Turn) -> None:
        self._turn = turn

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        panel = self._turn.draft.panel(f"{self._turn.conversation.title('assistant')} …")
        # One line is for the cursor, when the frame is taken away.
        room = max(options.size.height - 1, 1)
        for line in console.render_lines(panel, options, pad=False)[-room:]:
            yield from line
            yield Segment.line()


# --- messages as panels -----------------------------------------------------------------------------------------------


def _panel(message: Message, conversation: _Conversation, names: Mapping[str, str], width: int) -> Framed:
    role = str(message["role"])
    title = conversation.title(role)
    if message["role"] == "tool":
        title = f"{title}: {names.get(str(message['tool_call_id']), '')}".rstrip(": ")
    lines = []
    if reasoning := reasoning_text(message):
        lines.append(styled(reasoning, "dim"))
    if content := content_text(message):
        lines.append(styled(pretty(content, width - 4) if role in ("assistant", "tool") else content))
    for _, name, arguments in tool_calls(message):
        lines.append(Line.assemble(styled(name, "bold"), " ", styled(pretty(arguments, width - 5 - len(name)))))
    return framed(lines or [styled("(empty)", "dim")], title, _STYLES.get(role, ""))
