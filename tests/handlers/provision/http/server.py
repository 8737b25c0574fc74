"""A server on this machine that answers as it is told, and how it is asked."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from effectful_agents import fwd
from effectful_agents.handlers.provision.http import HttpModel
from effectful_agents.operations.loop import completion
from effectful_agents.operations.steps import emit
from effectful_agents.runtime import handler

RECORDED = Path(__file__).parent / "recorded"
HI: list[Any] = [{"role": "user", "content": "hi"}]
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("weather", "time")
]

type Answer = Callable[[BaseHTTPRequestHandler], None]


def recorded(name: str) -> bytes:
    return (RECORDED / name).read_bytes()


def whole(body: Any, status: int = 200, kind: str = "application/json", **headers: str) -> Answer:
    """An answer that is there at once."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.send_header("content-type", kind)
        request.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(data)

    return answer


def stream(*pieces: bytes, broken: bool = False) -> Answer:
    """An answer in pieces; a broken one ends in the middle."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        begin_stream(request)
        for piece in pieces:
            send_piece(request, piece)
        if not broken:
            request.wfile.write(b"0\r\n\r\n")

    return answer


def begin_stream(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("content-type", "text/event-stream")
    request.send_header("transfer-encoding", "chunked")
    request.end_headers()


def send_piece(request: BaseHTTPRequestHandler, piece: bytes) -> None:
    request.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
    request.wfile.flush()


def says(text: str, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **more}, "finish_reason": "stop"}
    return {"id": "r1", "model": "test-1", "choices": [choice]}


def chunk(text: str, finish: str | None = None) -> bytes:
    piece = {"model": "test-1", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}
    return f"data: {json.dumps(piece)}\n\n".encode()


DONE = b"data: [DONE]\n\n"


class Server:
    """Answers each request with the next answer; the last one is given again and again.

    Attributes:
        bodies: What was sent.
        raw: The same, byte for byte.
        headers: With which headers, the names in small letters.
        gone: Set when a client has closed a connection on which `wait_until_gone` waits.
    """

    def __init__(self) -> None:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                server.paths.append(self.path)
                server.headers.append({name.lower(): value for name, value in self.headers.items()})
                server.raw.append(self.rfile.read(int(self.headers["content-length"])))
                server.bodies.append(json.loads(server.raw[-1]))
                answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
                self.close_connection = True
                with contextlib.suppress(OSError):  # who does not wait is gone
                    answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Listening(ThreadingHTTPServer):
            request_queue_size = 128  # with the usual 5, those that come at the same time are turned away

        self.http = Listening(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        self.clear()
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def clear(self) -> None:
        self.paths: list[str] = []
        self.bodies: list[Any] = []
        self.raw: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.answers: list[Answer] = [whole(says("hi"))]
        self.gone = threading.Event()

    def will(self, *answers: Any) -> None:
        self.answers = [answer if callable(answer) else whole(answer) for answer in answers]

    def wait_until_gone(self, *pieces: bytes) -> Answer:
        """Send some pieces, and nothing more until the client has closed the connection."""

        def answer(request: BaseHTTPRequestHandler) -> None:
            with contextlib.suppress(OSError):  # it may be gone before all pieces were sent
                begin_stream(request)
                for piece in pieces:
                    send_piece(request, piece)
                request.rfile.read(1)
            self.gone.set()

        return answer

    def model(self, **options: Any) -> HttpModel:
        return HttpModel(self.url, **{"model": "m", "num_retries": 0} | options)

    def ask(self, messages: Any = HI, *, options: Any = None, **request: Any) -> Any:
        with handler(self.model(**(options or {}))):
            return completion(messages=messages, **request)


@contextlib.contextmanager
def listening() -> Iterator[list[Any]]:
    """Listen to `emit`."""
    heard: list[Any] = []

    def listen(event: Any) -> None:
        heard.append(event)
        fwd()

    with handler({emit: listen}):
        yield heard
