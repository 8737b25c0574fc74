"""llama.cpp inside this process: a model that is loaded once, and the thread that runs it.

llama.cpp's calls block, and an exception in a callback of theirs is swallowed. So a thread of the engine makes them,
one after the other, and whoever asked reads the pieces from a queue. The reader can be interrupted at any time and goes
on at once; it leaves a flag, which the thread sees when llama.cpp next reports: once in `_BATCH` tokens of the prompt
(up to a second), and at each token of the reply.
"""

from __future__ import annotations

import atexit
import ctypes
import dataclasses
import functools
import math
import os
import queue
import secrets
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from effectful_agents.errors import (
    ConfigurationError,
    ContextLengthError,
    MissingDependencyError,
    ProviderError,
    RequestTimeoutError,
)
from effectful_agents.runtime import can_wait, check_stopped, wait

__all__ = ["PROVIDER", "Engine", "engine_for"]

PROVIDER = "llama.cpp"

_LAST_WAIT = 10.0
"""Seconds that the end of the program waits for llama.cpp to stop."""
_LONGEST_WAIT = 0.1
"""Seconds after which a call looks whether it has been stopped."""
_BATCH = 256
"""Tokens of the prompt that are read between two reports."""
_CACHE = 512
"""Mebibytes in which llama.cpp may keep the prefixes of earlier conversations; its own default is 8,192."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Job:
    request: dict[str, Any]
    schema: dict[str, Any] | None
    pieces: queue.SimpleQueue[dict[str, Any] | BaseException | None] = dataclasses.field(
        default_factory=queue.SimpleQueue
    )
    cancelled: threading.Event = dataclasses.field(default_factory=threading.Event)


class Engine:
    """One model in memory. Its requests are carried out in the order in which they come.

    Args:
        path: The GGUF file.
        context: Tokens that prompt and reply may have together.
        threads: Threads of the processor to use.

    Attributes:
        loaded: Whether the model is in memory; the first request loads it.
    """

    def __init__(self, path: Path, context: int, threads: int) -> None:
        self.loaded = False
        self._path = path
        self._context = context
        self._threads = threads
        self._server: Any = None
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._end = ""  # why nothing can be asked any more
        self._thread = threading.Thread(target=self._work, name=f"llama.cpp {path.stem}", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str | None:
        """Where llama.cpp listens on this machine, which it does unasked. It answers only to a key that nobody has."""
        return self._server.listening_address if self.loaded else None

    def stream(
        self, request: dict[str, Any], schema: dict[str, Any] | None = None, timeout: float | None = None
    ) -> Generator[dict[str, Any], None, None]:
        """Carry out a request and yield the pieces of its reply, in llama.cpp's form. Closing ends it.

        Args:
            request: The request, in the form of chat completions.
            schema: The JSON schema that the reply is held to.
            timeout: Seconds that all of it may take, waiting for its turn and loading included.

        Raises:
            ConfigurationError: The file holds no model that llama.cpp can load, or the process was forked since then.
            MissingDependencyError: `xllamacpp` is not installed.
            ContextLengthError: The prompt is too long.
            RequestTimeoutError: The time is over.
            ProviderError: llama.cpp refused the request, or failed.
        """
        if self._end:
            raise ConfigurationError(self._end)
        job = _Job(_encodable(request), _encodable(schema))
        end = None if timeout is None else time.monotonic() + timeout
        self._jobs.put(job)
        try:
            while (piece := _next(job, end, timeout)) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                if "error" in piece:
                    raise _failure(piece["error"])
                yield piece
        finally:
            job.cancelled.set()

    def close(self) -> None:
        """Stop what is being done, and wait for that. Nothing can be asked afterwards."""
        self._end = "the program is ending: no model can be asked any more"
        self._jobs.put(None)
        self._thread.join(_LAST_WAIT)

    def abandon(self) -> None:
        """Make the best of it in a forked process: llama.cpp's threads stayed in the other, and it works no more."""
        self._end = "this process was forked from one that uses a local model; start it with `spawn` or `forkserver`"
        # Never freed: the destructor would wait for those threads.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._server))

    # Everything below runs in the engine's own thread.

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if not self._is_off(job):
                try:
                    self._carry_out(job)
                except BaseException as error:
                    job.pieces.put(error)
                else:
                    job.pieces.put(None)
            del job  # the prompt and the reply need not stay while nobody asks
        # Here, and not where the interpreter takes everything apart: whoever still waits for a reply refers to it.
        self._server = None

    def _is_off(self, job: _Job) -> bool:
        return job.cancelled.is_set() or bool(self._end)

    def _carry_out(self, job: _Job) -> None:
        def report(piece: dict[str, Any]) -> bool:
            job.pieces.put(piece)
            return self._is_off(job)

        if self._server is None:
            self._server = _load(self._path, self._context, self._threads)
            self.loaded = True
        if job.schema is not None:
            job.request["grammar"] = _xllamacpp().json_schema_to_grammar(job.schema)
        try:
            self._server.handle_chat_completions(job.request, report)
        except Exception as error:
            raise ProviderError(f"llama.cpp refused the request: {error}", status=400, provider=PROVIDER) from error


_engines: dict[tuple[Path, int, int], Engine] = {}
_engines_lock = threading.Lock()


def engine_for(path: Path, context: int, threads: int) -> Engine:
    """The engine of a model with these settings: one in a process, whoever asks."""
    key = (path.resolve(), context, threads)
    with _engines_lock:
        if key not in _engines:
            _engines[key] = Engine(path, context, threads)
        return _engines[key]


@atexit.register
def _close_engines() -> None:
    # A thread that is inside llama.cpp when the interpreter goes away takes the process down with a crash.
    for engine in _engines.values():
        engine.close()


def _abandon_engines() -> None:
    for engine in _engines.values():
        engine.abandon()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_abandon_engines)


def _next(job: _Job, end: float | None, timeout: float | None) -> dict[str, Any] | BaseException | None:
    try:
        if can_wait():
            return _next_while_others_go_on(job, end)
        return _next_in_this_thread(job, end)
    except queue.Empty:
        raise RequestTimeoutError(f"no whole reply within {timeout:g} s", provider=PROVIDER) from None


def _next_in_this_thread(job: _Job, end: float | None) -> dict[str, Any] | BaseException | None:
    while True:
        left = math.inf if end is None else max(0.0, end - time.monotonic())
        try:
            return job.pieces.get(timeout=min(left, _LONGEST_WAIT))
        except queue.Empty:
            if left <= _LONGEST_WAIT:
                raise
            check_stopped()


def _next_while_others_go_on(job: _Job, end: float | None) -> dict[str, Any] | BaseException | None:
    """The next piece in a call that is awaited. Looking for it again and again needs neither a thread nor a lock."""
    import anyio  # noqa: PLC0415 - loads asyncio

    pause = 0.002
    while True:
        try:
            return job.pieces.get_nowait()
        except queue.Empty:
            if end is not None and time.monotonic() >= end:
                raise
        wait(anyio.sleep(pause))
        pause = min(1.5 * pause, 0.05)


def _failure(error: dict[str, Any]) -> ProviderError:
    if error.get("type") != "exceed_context_size_error":
        status = error.get("code")
        return ProviderError(f"llama.cpp failed: {error.get('message')}", status=status, provider=PROVIDER)
    tokens, limit = error["n_prompt_tokens"], error["n_ctx"]
    return ContextLengthError(
        f"the prompt has {tokens:,} tokens, and this model was loaded to read {limit:,}, its reply included. "
        f"Shorten what is sent, or give more room with `LocalModel(context={_round_up(tokens)})`.",
        prompt_tokens=tokens,
        limit=limit,
        provider=PROVIDER,
    )


def _round_up(tokens: int) -> int:
    return -(-(tokens + 512) // 1024) * 1024


@functools.cache
def _xllamacpp() -> Any:
    # Its threads wait for each other hundreds of times a token, and spin while they do. On a machine that has something
    # else to do, 40 tokens then took 85 s instead of 0.3; with few spins they take 3 s, and 0.3 as before where it has
    # not. libgomp reads this once, when it is loaded.
    unset = not os.environ.keys() & {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"}
    if unset:
        os.environ["GOMP_SPINCOUNT"] = "1000"
    try:
        import xllamacpp  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingDependencyError(
            'models inside the process need llama.cpp: pip install "effectful-agents[local]"'
        ) from error
    finally:
        if unset:
            del os.environ["GOMP_SPINCOUNT"]
    return xllamacpp


def _load(path: Path, context: int, threads: int) -> Any:
    xllamacpp = _xllamacpp()
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.verbosity = -1
    params.n_ctx = context
    params.n_parallel = 1  # two would halve the context, and each would be slower than both in turn
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_batch = _BATCH
    params.cache_ram_mib = _CACHE
    params.warmup = False
    # The grammar holds the reply from its first token: no thinking before it, and nothing in it but content.
    params.enable_reasoning = 0
    params.force_pure_content_parser = True
    params.api_keys = [secrets.token_hex()]
    params.endpoint_slots = False
    params.ui = False
    try:
        return xllamacpp.Server(params)
    except Exception as error:
        raise ConfigurationError(f"llama.cpp cannot load `{path}`: {error}") from error


def _encodable[T](value: T) -> T:
    """The same JSON value without lone surrogates, which have no UTF-8."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # ty: ignore
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}  # ty: ignore
    if isinstance(value, (list, tuple)):
        return [_encodable(item) for item in value]  # ty: ignore
    return value
