"""The file of a cassette: what stands in it, and how several processes write one without losing anything."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

from effectful_agents.errors import CassetteError
from effectful_agents.testing.failures import failure_of
from effectful_agents.testing.recorded import RecordedRequest, digest_of
from effectful_agents.testing.tape_text import laid_out, read_text

__all__ = ["Recording", "Tape"]

FORMAT = "effectful-agents cassette"
VERSION = 1


@dataclasses.dataclass
class Recording:
    """A request, and what was replied to it, each time that it was made.

    Attributes:
        request: The request.
        replies: What was replied: a `reply` with the `stream` in which it came, or an `error`.
    """

    request: RecordedRequest
    replies: list[dict[str, Any]]


class Tape:
    """The recordings in a file, in the order in which their requests were first made.

    Several threads and processes may write one. The file is written whole and then put in the place of the old one, so
    that it is a whole one at any time.

    Args:
        path: The file; it need not be there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._recordings: dict[str, Recording] = {}
        self._seen: object = None
        self._writer = _Writer()
        self._lock = threading.Lock()

    @property
    def recordings(self) -> Sequence[Recording]:
        """What was recorded."""
        with self._lock:
            return list(self._recordings.values())

    def load(self) -> None:
        """Read the file, where it has changed.

        Raises:
            CassetteError: It cannot be read, or not be understood.
        """
        with self._lock:
            self._load()

    def find(self, digest: str) -> Recording | None:
        """What was recorded for a request."""
        return self._recordings.get(digest)

    def change(self, change: Callable[[dict[str, Recording]], None]) -> None:
        """Change the recordings as they are in the file now, by their digests, and write them.

        Raises:
            CassetteError: The file cannot be read or written.
        """
        with self._lock, _between_processes(self.path):
            self._load()
            before = list(self._recordings)
            change(self._recordings)
            if list(self._recordings)[: len(before)] != before:
                self._writer = _Writer()  # what later requests go on from is not where it was
            self._write()

    def _load(self) -> None:
        try:
            status = os.stat(self.path)
            seen = (status.st_mtime_ns, status.st_size, status.st_ino)
            if seen == self._seen:
                return
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            self._recordings, self._seen, self._writer = {}, None, _Writer()
            return
        except (OSError, UnicodeDecodeError) as error:
            raise self._error(f"cannot be read: {error}") from error
        self._recordings, self._seen, self._writer = self._understood(text), seen, _Writer()

    def _understood(self, text: str) -> dict[str, Recording]:
        try:
            data = read_text(text)
        except ValueError as error:
            raise self._error(f"is damaged: {error}") from error
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise self._error("is no cassette: it does not begin with its format")
        if data.get("version") != VERSION:
            raise self._error(f"is of version {data.get('version')!r}, and this package reads version {VERSION}")
        written = data.get("recordings", [])
        if not isinstance(written, list):
            raise self._error("is damaged: its `recordings` are no list")
        recordings: dict[str, Recording] = {}
        for number, each in enumerate(written, 1):
            try:
                recording = _read(each, recordings)
            except (LookupError, TypeError, AttributeError, ValueError) as error:
                raise self._error(f"is damaged: recording {number} of it is not to be understood ({error})") from error
            # Two branches may have recorded the same request, and been merged.
            known = recordings.setdefault(recording.request.digest, recording)
            if known is not recording:
                known.replies += recording.replies
        return recordings

    def _write(self) -> None:
        text = self._writer.write(list(self._recordings.values()))
        # Only one process at a time is here, and what an interrupted one left is written over.
        path = Path(os.path.realpath(self.path))
        draft = path.with_name(f".{path.name}.draft")
        try:
            draft.write_text(text, encoding="utf-8", newline="\n")
            os.replace(draft, path)
            status = os.stat(self.path)
        except OSError as error:
            raise self._error(f"cannot be written: {error}") from error
        self._seen = (status.st_mtime_ns, status.st_size, status.st_ino)

    def _error(self, problem: str) -> CassetteError:
        return CassetteError(f"the cassette `{self.path}` {problem}.", path=str(self.path))


# --- requests as what is new in them ----------------------------------------------------------------------------------


class _Writer:
    """Writes recordings down. A request that goes on from an earlier one says only what is new in it.

    What was written once is kept: mostly there is one recording more.
    """

    def __init__(self) -> None:
        self._by_beginning: dict[bytes, RecordedRequest] = {}
        self._before: RecordedRequest | None = None
        self._requests: dict[str, str] = {}
        self._texts: dict[str, tuple[Recording, int, str]] = {}

    def write(self, recordings: Sequence[Recording]) -> str:
        """All of the file."""
        head = f'{{\n "format": {json.dumps(FORMAT)},\n "version": {VERSION},\n "recordings": ['
        texts = [f"\n  {self._text(recording)}" for recording in recordings]
        return f"{head}{','.join(texts)}\n ]\n}}\n"

    def _text(self, recording: Recording) -> str:
        digest, count = recording.request.digest, len(recording.replies)
        known = self._texts.get(digest)
        if known is not None and known[0] is recording and known[1] == count:
            return known[2]
        if digest not in self._requests:
            self._requests[digest] = laid_out(self._new_in(recording.request), 3)
        replies = laid_out(recording.replies, 3)
        text = f'{{\n   "request": {self._requests[digest]},\n   "replies": {replies}\n  }}'
        self._texts[digest] = (recording, count, text)
        return text

    def _new_in(self, request: RecordedRequest) -> dict[str, Any]:
        beginnings = request.beginnings
        same = next((n for n in range(len(beginnings), 0, -1) if beginnings[n - 1] in self._by_beginning), 0)
        base = self._by_beginning[beginnings[same - 1]] if same else self._before
        for beginning in beginnings:
            self._by_beginning[beginning] = request
        self._before = request
        messages = list(request.messages[same:])
        if base is None:
            return {"digest": request.digest, "settings": dict(request.settings), "messages": messages}
        settings = request.settings.items()
        changed = {name: value for name, value in settings if name not in base.settings or base.settings[name] != value}
        gone = [name for name in base.settings if name not in request.settings]
        new: dict[str, Any] = {"digest": request.digest, "like": base.digest}
        new |= {"same_messages": same} if same else {}
        new |= {"settings": changed} if changed else {}
        new |= {"without": gone} if gone else {}
        return {**new, "messages": messages}


def _read(data: Any, recordings: dict[str, Recording]) -> Recording:
    written = data["request"]
    messages, settings = tuple(written["messages"]), dict(written.get("settings", {}))
    marks = tuple(map(digest_of, messages))
    if "like" in written:
        if written["like"] not in recordings:
            raise ValueError(f"it is like {written['like']!r}, which does not stand before it")
        base, same = recordings[written["like"]].request, written.get("same_messages", 0)
        messages, marks = (*base.messages[:same], *messages), (*base.marks[:same], *marks)
        gone = written.get("without", ())
        settings = {name: value for name, value in base.settings.items() if name not in gone} | settings
    if not all(isinstance(message, dict) for message in messages):
        raise ValueError("one of its messages is no mapping")
    replies = list(data["replies"])
    for reply in replies:
        if not any(isinstance(reply.get(name), dict) for name in ("reply", "error")):
            raise ValueError("one of its replies is neither a `reply` nor an `error`")
        if reply.get("reply") is None:
            failure_of(reply["error"])  # that it can be read
    return Recording(RecordedRequest(str(written["digest"]), messages, marks, settings), replies)


# --- one process at a time --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _between_processes(path: Path) -> Generator[None]:
    """Where only one process at a time is, for one file and its names."""
    real = Path(os.path.realpath(path))
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        lock = _open_lock(real)
    except OSError as error:
        raise CassetteError(f"the cassette `{path}` cannot be written: {error}.", path=str(path)) from error
    try:
        _take(lock)
        try:
            yield
        finally:
            _give_back(lock)
    finally:
        os.close(lock)


# Nothing beside the cassette, where it would be committed with it.
try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    def _open_lock(path: Path) -> int:
        name = hashlib.blake2b(str(path).encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()
        return os.open(Path(tempfile.gettempdir()) / f"effectful-agents-{name}.lock", os.O_RDWR | os.O_CREAT)

    def _take(lock: int) -> None:
        getattr(msvcrt, "locking")(lock, getattr(msvcrt, "LK_LOCK"), 1)  # noqa: B009 - not there elsewhere

    def _give_back(lock: int) -> None:
        os.lseek(lock, 0, os.SEEK_SET)
        getattr(msvcrt, "locking")(lock, getattr(msvcrt, "LK_UNLCK"), 1)  # noqa: B009

else:

    def _open_lock(path: Path) -> int:
        # The folder itself, which is the same one for processes whose folders for temporary files differ.
        return os.open(path.parent, os.O_RDONLY)

    def _take(lock: int) -> None:
        fcntl.flock(lock, fcntl.LOCK_EX)

    def _give_back(lock: int) -> None:
        fcntl.flock(lock, fcntl.LOCK_UN)
