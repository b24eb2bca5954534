"""A report on localhost that follows the runs: a page, its data, and the version that says when they changed.

No path of a request ever becomes a path of a file, so there is nothing to traverse. Only this machine is answered, and
only under a local name: a page of another site that has its own name point here (DNS rebinding) is refused.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from attnlab.errors import UserError
from attnlab.report.html import embedded, page

ADDRESS = "127.0.0.1"


class Live:
    """The page and its data as of now; made again only when `version` says another thing. Requests may come side by side."""

    def __init__(self, title: str, version: Callable[[], str], contents: Callable[[str], Any]) -> None:
        self.version = version
        self._title = title
        self._contents = contents
        self._lock = threading.Lock()
        self._made: tuple[str, Any] | None = None

    def page(self) -> bytes:
        """The whole HTML file."""
        return page(self._now(), self._title).encode()

    def data(self) -> bytes:
        """Its contents alone, as JSON: what an open page takes up when the version has changed."""
        return embedded(self._now()).encode()

    def _now(self) -> Any:
        with self._lock:
            version = self.version()
            if self._made is None or self._made[0] != version:
                self._made = (version, self._contents(version))
            return self._made[1]


def server(live: Live, port: int) -> ThreadingHTTPServer:
    """Bound to this machine alone; port 0 takes a free one. Raises UserError for a port that cannot be had."""

    class Handler(BaseHTTPRequestHandler):
        """`/`, `/data` and `/version`, for GET and HEAD."""

        server_version, sys_version = "attnlab", ""

        def do_GET(self) -> None:
            self._answer(body=True)

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def _answer(self, body: bool) -> None:
            port = running.server_address[1]
            if self.headers.get("Host") not in (f"{ADDRESS}:{port}", f"localhost:{port}"):
                self._send(HTTPStatus.FORBIDDEN, "text/plain", b"only under a local name\n", body)
                return
            match self.path:
                case "/":
                    self._send(HTTPStatus.OK, "text/html", live.page(), body)
                case "/data":
                    self._send(HTTPStatus.OK, "application/json", live.data(), body)
                case "/version":
                    self._send(HTTPStatus.OK, "text/plain", live.version().encode(), body)
                case _:
                    self._send(HTTPStatus.NOT_FOUND, "text/plain", b"there is only /\n", body)

        def _send(self, status: HTTPStatus, kind: str, content: bytes, body: bool) -> None:
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cross-Origin-Resource-Policy", "same-origin")
            self.end_headers()
            if body:
                self.wfile.write(content)

        def log_message(self, *arguments: object) -> None:
            """Quiet: a line a poll would bury what the user started."""

    try:
        running = ThreadingHTTPServer((ADDRESS, port), Handler)
    except (OSError, OverflowError) as error:
        raise UserError(f"--port: got {port} ({error}), allowed: a free port, or 0 for any") from None
    return running


def serve(live: Live, port: int) -> None:
    """Answer until Ctrl-C."""
    with server(live, port) as running:
        live.page()  # a mistake shows here, not in the browser
        print(
            f"http://{ADDRESS}:{running.server_address[1]}/ follows the runs; Ctrl-C ends it",
            file=sys.stderr,
            flush=True,
        )
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            print(file=sys.stderr)
