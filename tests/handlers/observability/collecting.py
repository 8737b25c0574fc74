"""A server on this machine that takes in what is sent to a collector, and keeps it."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """Listens on a free port while its block runs.

    Attributes:
        url: Where it listens.
        requests: The path, headers and body of each request.
    """

    url: str

    def __init__(self, status: int = 200) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                headers = {name.lower(): value for name, value in self.headers.items()}
                collector.requests.append((self.path, headers, body))
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def spans(self) -> list[Any]:
        """The spans that came, in the protobuf form of the protocol."""
        return [span for _, scope in self.scopes() for span in scope.spans]

    def scopes(self) -> list[tuple[Any, Any]]:
        """What came, by resource and instrumentation."""
        found = []
        for path, _, body in self.requests:
            if path.endswith("/traces"):
                message = ExportTraceServiceRequest()
                message.ParseFromString(body)
                found += [(one.resource, scope) for one in message.resource_spans for scope in one.scope_spans]
        return found

    def metrics(self) -> list[Any]:
        """The metrics that came."""
        found = []
        for path, _, body in self.requests:
            if path.endswith("/metrics"):
                message = ExportMetricsServiceRequest()
                message.ParseFromString(body)
                found += [
                    metric
                    for one in message.resource_metrics
                    for scope in one.scope_metrics
                    for metric in scope.metrics
                ]
        return found


def attributes(found: Any) -> dict[str, Any]:
    """The attributes of a span or a point of a metric, as they came."""
    return {one.key: _value(one.value) for one in found.attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, kind)
