"""Replies of real models, recorded once and given again."""

from __future__ import annotations

import contextlib
import copy
import os
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any, Literal, cast, get_args

from effectful_agents.encoding import to_jsonable
from effectful_agents.errors import CassetteError, DecodingError, OptionError, ProviderError, UnrecordedRequest
from effectful_agents.messages import Finish, PartialValue, Request, Response, StreamEvent
from effectful_agents.messages.telling import told, unstreamed
from effectful_agents.operations.loop import completion
from effectful_agents.operations.steps import StepEvent, current_ids, emit
from effectful_agents.runtime import ObjectInterpretation, fwd, handler, implements, interpretation
from effectful_agents.testing.failures import failure_of, is_passing, written_failure
from effectful_agents.testing.nearest import differences, nearest
from effectful_agents.testing.recorded import Forms, RecordedRequest
from effectful_agents.testing.streams import Sent, events_of, sent, strings_in
from effectful_agents.testing.tape import Recording, Tape

__all__ = ["Cassette", "CassetteMode"]

type CassetteMode = Literal["replay", "record", "rewrite"]
"""Whether a model is asked: never, for what was not recorded, or always."""

_OF_VCR = {"none": "replay", "new_episodes": "record", "once": "record", "any": "record", "all": "rewrite"}


class Cassette(ObjectInterpretation[Any, Any]):
    """Give recorded replies again, and record those that are missing.

    Handles `completion`. It stands outermost, in the place of a provider and outside of whatever fills in settings, so
    that it sees each request as it is sent; a model that is asked may stand anywhere. A reply that came in pieces is
    told in the same pieces again; an error of a provider is raised again, as what it was. What failed for the
    network, a busy service or a key (401, 402, 403) is not recorded: the request is asked again next time.

    Requests are told apart by what they ask: messages, tools, the form of the answer, and settings that may change the
    reply, the model among them. Not by keys, headers, addresses, time limits and numbers of retries, none of which is
    written either; what looks like a key in a text is written as a mark. The same request has several replies if it was
    made several times; they are given in their order, in each block of `with handler(cassette)` from the first on.

    The file is JSON for people to read. It is there whole after each reply; several tests, threads and processes may
    share it.

    Args:
        path: The file.
        mode: `replay` never asks a model. `record` asks one what is not recorded, or not as often. `rewrite` asks
            everything anew, and forgets what the block did not ask, unless an exception ended it; in this mode no other
            block may need what is in the file, and no other process may use it.
        scrub: A function of a text that gives the one to compare and write, in requests and in replies: for dates,
            names of temporary files, personal data. What it gives for its own result is that result. A program that
            is recorded gets its reply so as well, since that is what a replay gives it.
        ignore: Names of settings that make no difference.

    Attributes:
        played: How many replies were given from the file in this block.
        recorded: How many were written to it in this block.

    Raises:
        OptionError: There is no such mode.
        CassetteError: At the beginning of the block: the file cannot be read. From `completion`: it cannot be written.
        UnrecordedRequest: From `completion`: nothing is recorded for the request. It says what is different from the
            nearest that is.

    >>> import tempfile
    >>> from effectful_agents.testing import ScriptedModel
    >>> path = Path(tempfile.mkdtemp()) / "greeting.json"
    >>> def greet():
    ...     reply = completion(messages=[{"role": "user", "content": "Hello"}])
    ...     return reply["choices"][0]["message"]["content"]
    >>> with handler(ScriptedModel("Good morning")), handler(Cassette(path, mode="record")):
    ...     greet()
    'Good morning'
    >>> with handler(Cassette(path)):
    ...     greet()
    'Good morning'
    """

    played: int
    recorded: int

    def __init__(
        self,
        path: str | os.PathLike[str],
        mode: CassetteMode = "replay",
        *,
        scrub: Callable[[str], str] | None = None,
        ignore: Iterable[str] = (),
    ) -> None:
        if mode not in get_args(CassetteMode.__value__):
            hint = f"; what vcrpy calls `{mode}` is `{_OF_VCR[mode]}` here" if mode in _OF_VCR else ""
            raise OptionError(f"`mode` of `Cassette` is 'replay', 'record' or 'rewrite', and not {mode!r}{hint}.")
        if isinstance(ignore, str):
            raise OptionError(f"`ignore` of `Cassette` is a list of names, and not the text {ignore!r}.")
        self.path = Path(path)
        self.mode = mode
        self._tape = Tape(self.path)
        self._forms = Forms(scrub, frozenset(ignore))
        self._lock = threading.Lock()
        self._blocks = 0
        self._begin()

    @property
    def unused(self) -> list[Request]:
        """The recorded requests with replies that were not given in this block, one for each such reply."""
        with self._lock:
            left = [(each, len(each.replies) - self._given[each.request.digest]) for each in self._tape.recordings]
        return [cast(Request, each.request.to_json()) for each, count in left for _ in range(count)]

    @contextlib.contextmanager
    def while_installed(self) -> Generator[None]:
        with self._lock:
            self._blocks += 1
            if self._blocks == 1:
                self._begin()
        try:
            self._tape.load()
            yield
            if self.mode == "rewrite" and self._blocks == 1:
                self._forget_unasked()
        finally:
            with self._lock:
                self._blocks -= 1

    def _begin(self) -> None:
        self._given: Counter[str] = Counter()
        self._asked_anew: set[str] = set()
        self._unanswered: set[str] = set()
        self.played = self.recorded = 0

    @implements(completion)
    def completion(self, **request: Any) -> Response:
        asked = self._forms.request(request)
        if self.mode == "record":
            self._forget_passing(asked.digest)
        is_asked_anew = self.mode == "rewrite" and not self._is_new(asked.digest)
        reply = None if is_asked_anew else self._next(asked.digest)
        if reply is not None:
            return self._played(reply)
        if self.mode == "replay":
            raise self._missing(asked)
        return self._record(asked)

    # --- replaying ---

    def _next(self, digest: str) -> dict[str, Any] | None:
        recording = self._tape.find(digest)
        with self._lock:
            given = self._given[digest]
            if recording is None or given >= len(recording.replies):
                return None
            self._given[digest] += 1
            self.played += 1
            return recording.replies[given]

    def _played(self, recorded: dict[str, Any]) -> Response:
        # The program may do with it what it likes; another block gets it as it was.
        reply = cast("Response | None", copy.deepcopy(recorded.get("reply")))
        if emit in interpretation():
            if reply is not None and "stream" not in recorded:
                reply = unstreamed(reply)
                events = told(reply)
            else:
                events = events_of(recorded.get("stream", ()), reply)
            for event in self._readable(events):
                emit(event)
        if reply is None:
            raise failure_of(recorded["error"])
        return reply

    def _readable(self, events: Iterable[StreamEvent]) -> list[StreamEvent]:
        try:
            return list(events)
        except (LookupError, TypeError, AttributeError) as error:
            raise CassetteError(
                f"a stream in the cassette `{self.path}` is damaged ({error!r}). Without its `stream`, a reply is told "
                "in one piece.",
                path=str(self.path),
            ) from error

    def _missing(self, asked: RecordedRequest) -> UnrecordedRequest:
        recordings = self._tape.recordings
        text = f"the cassette `{self.path}` has no reply to this request."
        if not self.path.exists():
            text = f"there is no cassette `{self.path}`."
        known = self._tape.find(asked.digest)
        near = nearest(asked, [each.request for each in recordings])
        if known is not None:
            count = len(known.replies)
            times = "once" if count == 1 else f"{count} times"
            text = f"the cassette `{self.path}` has this request {times}, and it was made once more."
        elif near is not None:
            place = next(number for number, each in enumerate(recordings, 1) if each.request is near)
            lines = "".join(f"\n  {line}" for line in differences(near, asked))
            text += f" Of the {len(recordings)} recorded, number {place} is the nearest; different are:{lines}\n"
        return UnrecordedRequest(
            f"{text.rstrip(' ')}{'' if text.endswith(chr(10)) else ' '}{_HOW_TO_RECORD}", path=str(self.path)
        )

    # --- recording ---

    def _record(self, asked: RecordedRequest) -> Response:
        stream: list[StreamEvent] = []
        try:
            reply = self._heard(stream)
        except (ProviderError, DecodingError) as error:
            failure = written_failure(error)
            if is_passing(error):
                with self._lock:
                    self._unanswered.add(asked.digest)
            elif failure is not None:
                self._write(asked, {"error": self._forms.reply(failure)}, stream)
            raise
        written = self._forms.reply(reply)
        # What came in one piece is told so without its stream, unless another began before it.
        if not stream or (_is_whole(reply) and stream == list(told(reply))):
            self._write(asked, {"reply": _without_mark(written)}, [])
        else:
            self._write(asked, {"reply": written}, stream)
        # The program goes on from what it will be given when this is replayed.
        return reply if written == to_jsonable(reply) else copy.deepcopy(written)

    def _heard(self, stream: list[StreamEvent]) -> Response:
        # A listener more would have the reply streamed that nobody else wants to hear.
        if emit not in interpretation():
            return fwd()
        ids = current_ids()

        def hear(event: StreamEvent | StepEvent) -> None:
            # Not what is told of a call that is made meanwhile.
            if not isinstance(event, StepEvent | PartialValue) and current_ids() is ids:
                stream.append(event)
            fwd()

        with handler({emit: hear}):
            return fwd()

    def _write(self, asked: RecordedRequest, written: dict[str, Any], stream: list[StreamEvent]) -> None:
        pieces = [piece for event in stream if (piece := sent(event)) is not None]
        # A secret that stands in two pieces cannot be taken out of either; then the reply is told in one.
        if pieces and self._says_all(written, stream, pieces):
            written["stream"] = pieces
        digest = asked.digest

        def add(recordings: dict[str, Recording]) -> None:
            recording = recordings.setdefault(digest, Recording(asked, []))
            if self.mode == "rewrite":
                recordings[digest] = Recording(asked, self._renewed_replies(recording, written))
            else:
                recording.replies.append(written)

        self._tape.change(add)
        with self._lock:
            self._note_renewed(digest)
            self._given[digest] += 1
            self.recorded += 1

    def _says_all(self, written: dict[str, Any], stream: list[StreamEvent], pieces: list[Sent]) -> bool:
        text = strings_in(pieces)
        if self._forms.reply(text) != text:
            return False
        last = stream[-1]
        return not isinstance(last, Finish) or written.get("reply") == to_jsonable(last.response)

    def _renewed_replies(self, old: Recording, written: dict[str, Any]) -> list[dict[str, Any]]:
        return [*(old.replies if old.request.digest in self._asked_anew else ()), written]

    def _note_renewed(self, digest: str) -> None:
        self._asked_anew.add(digest)

    def _is_new(self, digest: str) -> bool:
        """Whether somebody else has asked a request anew, so that it need not be."""
        return False

    def _forget_unasked(self) -> None:
        kept = self._asked_anew | self._unanswered

        def forget(recordings: dict[str, Recording]) -> None:
            for digest in [digest for digest in recordings if digest not in kept]:
                del recordings[digest]

        if any(each.request.digest not in kept for each in self._tape.recordings):
            self._tape.change(forget)

    def _forget_passing(self, digest: str) -> None:
        """Forget the outages among the replies to a request, which an earlier version recorded."""

        def forget(recordings: dict[str, Recording]) -> None:
            if (old := recordings.get(digest)) is None:
                return
            replies = [reply for reply in old.replies if not self._is_passing(reply)]
            if replies:
                recordings[digest] = Recording(old.request, replies)
            else:
                del recordings[digest]

        recording = self._tape.find(digest)
        if recording is not None and any(map(self._is_passing, recording.replies)):
            self._tape.change(forget)

    @staticmethod
    def _is_passing(reply: dict[str, Any]) -> bool:
        return "error" in reply and is_passing(failure_of(reply["error"]))


_HOW_TO_RECORD = (
    'To record it, run with a model and `mode="record"`, under pytest with `--cassette-mode=record`; `rewrite` asks '
    "everything anew."
)


def _is_whole(reply: Response) -> bool:
    return reply.get("provider_metadata", {}).get("streamed") is False


def _without_mark(reply: Response) -> Response:
    """The reply without what says how it came, which is said anew when it is told again."""
    if not _is_whole(reply):
        return reply
    metadata = {name: value for name, value in reply.get("provider_metadata", {}).items() if name != "streamed"}
    rest = {name: value for name, value in reply.items() if name != "provider_metadata"}
    return cast(Response, rest | ({"provider_metadata": metadata} if metadata else {}))
