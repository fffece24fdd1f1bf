"""One page, served to browsers of this machine."""

from __future__ import annotations

from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

_HOST: Final = "127.0.0.1"


class Served:
    """A server of one page, as long as the `with` block; nothing else of the machine is served.

    Args:
        page: its HTML.
        port: 0 for one that is free.

    Attributes:
        address: where it is.

    Raises:
        OSError: the port is taken.
    """

    def __init__(self, page: str, port: int) -> None:
        self._server = ThreadingHTTPServer((_HOST, port), _handler(page.encode()))
        self.address = f"http://{_HOST}:{self._server.server_address[1]}/"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._server.server_close()

    def wait(self) -> None:
        """Serves until Ctrl-C."""
        with suppress(KeyboardInterrupt):
            self._server.serve_forever()

    def stop(self) -> None:
        """Has `wait`, which another thread is in, return."""
        self._server.shutdown()


def _handler(page: bytes) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # Another site could make its name mean this machine; then the name would be its own.
            host = (self.headers.get("Host") or "").rpartition(":")[0]
            known = host in (_HOST, "localhost") and self.path.partition("?")[0] == "/"
            told = page if known else b"not found\n"
            self.send_response(200 if known else 404)
            kind = "text/html" if known else "text/plain"
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing of requests."""

    return Handler
