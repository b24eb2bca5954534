"""A loopback stand-in of the Hugging Face Hub: as much of its API as `datasets` needs to read a data set.

Real client, real HTTP, invented content: tests set HF_ENDPOINT to `HubServer.url`. It answers the data set's
description, the file listing and the files themselves (whole or by range), the same under each of its commits.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
DATASET = re.compile(
    r"^/(?:api/)?datasets/(?P<repository>[^/]+/[^/]+)(?:/(?P<verb>\w[\w-]*)/(?P<revision>[^/]+)(?P<path>/.*)?)?$"
)


@dataclass
class HubServer:
    """Serves `repositories[id][file name] = content` on 127.0.0.1; `requests` lists what was asked, in order."""

    repositories: dict[str, dict[str, bytes]]
    revisions: tuple[str, ...] = (COMMIT, "main")
    requests: list[str] = field(default_factory=list)

    def __enter__(self) -> HubServer:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                hub.answer(self)

            do_HEAD = do_POST = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                hub.requests.append(f"{self.command} {self.path}")

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers["Content-Length"] or 0))
        match = DATASET.match(unquote(urlsplit(request.path).path))
        if match is None:
            return _send(request, 404, b"{}")
        files = self.repositories.get(match["repository"])
        if files is None:
            return _send(request, 404, b"{}", {"X-Error-Code": "RepoNotFound"})
        if match["revision"] is not None and match["revision"] not in self.revisions:
            return _send(request, 404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        path = (match["path"] or "").strip("/")
        commit = COMMIT if match["revision"] in (None, "main") else match["revision"]
        match match["verb"]:
            case None | "revision":
                siblings = [{"rfilename": name} for name in files]
                about = {"id": match["repository"], "sha": commit, "siblings": siblings, "tags": []}
                return _send_json(request, about)
            case "tree":
                deep = "recursive=true" in urlsplit(request.path).query.lower()
                return _send_json(
                    request, [entry for entry in _tree(files) if _below(entry["path"], path, deep)]
                )
            case "resolve":
                return _send_file(request, files.get(path), commit)
            case _:
                return _send(request, 404, b"{}")


def _tree(files: dict[str, bytes]) -> list[dict[str, Any]]:
    """Every file and folder, as the Hub lists them."""
    folders = {name[:cut] for name in files for cut, letter in enumerate(name) if letter == "/"}
    listed = [{"type": "directory", "path": folder, "oid": "0" * 40, "size": 0} for folder in sorted(folders)]
    for name, content in sorted(files.items()):
        listed.append(
            {"type": "file", "path": name, "oid": hashlib.sha1(content).hexdigest(), "size": len(content)}
        )
    return listed


def _below(path: str, folder: str, deep: bool) -> bool:
    prefix = f"{folder}/" if folder else ""
    return path.startswith(prefix) and (deep or "/" not in path.removeprefix(prefix))


def _send_file(request: BaseHTTPRequestHandler, content: bytes | None, commit: str) -> None:
    if content is None:
        return _send(request, 404, b"{}", {"X-Error-Code": "EntryNotFound"})
    headers = {
        "ETag": f'"{hashlib.sha1(content).hexdigest()}"',
        "X-Repo-Commit": commit,
        "Accept-Ranges": "bytes",
    }
    span = re.match(r"bytes=(\d+)-(\d*)", request.headers["Range"] or "")
    if span is None:
        return _send(request, 200, content, headers)
    first, last = int(span[1]), min(int(span[2] or len(content) - 1), len(content) - 1)
    headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
    return _send(request, 206, content[first : last + 1], headers)


def _send_json(request: BaseHTTPRequestHandler, answer: Any) -> None:
    _send(request, 200, json.dumps(answer).encode(), {"Content-Type": "application/json"})


def _send(
    request: BaseHTTPRequestHandler, code: int, body: bytes, headers: dict[str, str] | None = None
) -> None:
    request.send_response(code)
    for name, value in (headers or {}).items():
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(body)
