"""A stand-in for W&B's server on the loopback: enough of its protocol for runs, resuming, media, `wandb sync`,
sweeps with an agent, and saved workspaces and reports.

It keeps what arrives, so that tests can compare it with what was logged. Written from what wandb 0.31 sends; the
real server is not needed and not imitated beyond that (no reads through `wandb.Api`, no artifact contents).
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import yaml

ENTITY = "tester"
SWEEP = "a-sweep"
API_KEY = "0123456789" * 4


@dataclass
class SeenRun:
    """What the server knows of one run."""

    upsert: dict[str, Any] = field(default_factory=dict)  # the first UpsertBucket's variables
    config: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, dict[int, str]] = field(default_factory=dict)  # stream file -> offset -> line
    files: dict[str, bytes] = field(default_factory=dict)
    exit_code: int | None = None

    @property
    def history(self) -> list[dict[str, Any]]:
        lines = self.lines.get("wandb-history.jsonl", {})
        return [json.loads(lines[offset]) for offset in sorted(lines)]

    @property
    def summary(self) -> dict[str, Any]:
        lines = self.lines.get("wandb-summary.json", {})
        return json.loads(lines[max(lines)]) if lines else {}


class StandIn:
    """`with StandIn() as server:` listens on server.url; server.runs has what arrived, by run id."""

    def __init__(self) -> None:
        self.runs: dict[str, SeenRun] = {}
        self.views: dict[
            str, dict[str, Any]
        ] = {}  # saved workspaces and reports: variables of the last save, by id
        self.project: str = ""  # that a report was made for
        self.sweep: str = ""  # the last one's configuration, as it was sent
        self.combinations: list[dict[str, Any]] = []  # of the sweep's grid: those that no agent got yet
        self.unknown: list[str] = []  # GraphQL operations without an answer here
        self.silent = threading.Event()  # while set, it takes requests and answers none
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> StandIn:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        self.silent.clear()
        if self._thread.is_alive():
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def environment(self) -> dict[str, str]:
        return {"WANDB_BASE_URL": self.url, "WANDB_API_KEY": API_KEY}

    def answer(self, operation: str, variables: dict[str, Any]) -> dict[str, Any]:
        """The `data` of a GraphQL answer."""
        entity = {"id": "entity", "name": ENTITY}
        match operation:
            case "Viewer" | "GetDefaultEntity":
                teams = {"edges": []}
                viewer = {
                    "id": "1",
                    "entity": ENTITY,
                    "username": ENTITY,
                    "email": "",
                    "flags": "{}",
                    "teams": teams,
                }
                return {"viewer": viewer}
            case "UpsertBucket":
                run_id = variables["name"]
                inserted = run_id not in self.runs
                run = self.runs.setdefault(run_id, SeenRun(upsert=variables))
                if variables.get("config"):
                    run.config = {
                        key: value["value"] for key, value in json.loads(variables["config"]).items()
                    }
                project = {"id": "project", "name": variables.get("project") or "", "entity": entity}
                bucket = self._bucket(run_id) | {"sweepName": None, "description": None, "project": project}
                return {"upsertBucket": {"bucket": bucket, "inserted": inserted}}
            case "RunResumeStatus":
                run_id = variables["name"]
                bucket = self._bucket(run_id) if run_id in self.runs else None
                return {
                    "model": {
                        "id": "project",
                        "name": variables["project"],
                        "entity": entity,
                        "bucket": bucket,
                    }
                }
            case "CreateRunFiles":
                run_id = variables["run"]
                files = [
                    {"name": name, "uploadUrl": f"{self.url}/upload/{run_id}/{name}"}
                    for name in variables["files"]
                ]
                return {"createRunFiles": {"runID": run_id, "uploadHeaders": [], "files": files}}
            case "ProjectInternalId":
                self.project = variables["projectName"]
                return {"project": {"id": "project", "internalId": "internal-project"}}
            case "GetProjects":
                project = {
                    "__typename": "Project", "id": "project", "name": self.project, "entityName": ENTITY,
                    "createdAt": "2020-01-01T00:00:00", "isBenchmark": False, "user": None,
                }  # fmt: skip
                page = {"__typename": "PageInfo", "endCursor": None, "hasNextPage": False}
                return {"models": {"pageInfo": page, "edges": [{"node": project}]}}
            case "UpsertView2" | "upsertView":  # of a workspace, and of a report
                view_id = variables.get("id") or f"view-{len(self.views) + 1}"
                inserted = view_id not in self.views
                self.views[view_id] = variables
                project = {
                    "id": "project",
                    "name": variables["projectName"],
                    "entityName": variables["entityName"],
                }
                view = {
                    "id": view_id, "type": variables["type"], "name": variables["name"],
                    "displayName": variables["displayName"], "description": variables["description"],
                    "project": project, "spec": json.loads(variables["spec"]), "updatedAt": None,
                }  # fmt: skip
                return {"upsertView": {"view": view, "inserted": inserted}}
            case "UpsertSweep":
                self.sweep = variables["config"]
                self.combinations = list(_grid(self.sweep))
                project = {"id": "project", "name": variables["projectName"], "entity": entity}
                return {
                    "upsertSweep": {
                        "sweep": {"name": SWEEP, "project": project},
                        "configValidationWarnings": [],
                    }
                }
            case "SweepWithRuns":
                return {"project": {"sweep": {"id": SWEEP, "config": self.sweep, "runs": {"edges": []}}}}
            case "CreateAgent":
                return {"createAgent": {"agent": {"id": "agent"}}}
            case "Heartbeat":  # a busy agent gets nothing, a free one the next combination, or the end
                busy = any(json.loads(variables["runState"]).values())
                commands = [] if busy else [self._next_of_the_sweep()]
                return {"agentHeartbeat": {"agent": {"id": "agent"}, "commands": json.dumps(commands)}}
            case "ArtifactType":
                return {"project": {"artifact": None}}
            case "CreateArtifact":  # COMMITTED: "I have that one already", so its contents are not uploaded
                sequence = {"id": "sequence", "latestArtifact": {"id": "artifact", "versionIndex": 0}}
                artifact = {"id": "artifact", "state": "COMMITTED", "artifactSequence": sequence}
                return {"createArtifact": {"artifact": artifact}}
            case _:
                self.unknown.append(operation)
                return {}

    def stream(self, run_id: str, message: dict[str, Any]) -> None:
        run = self.runs[run_id]
        for name, chunk in message.get("files", {}).items():
            lines = run.lines.setdefault(name, {})
            for index, line in enumerate(chunk["content"]):
                lines[chunk["offset"] + index] = line
        if message.get("complete"):
            run.exit_code = message["exitcode"]

    def _next_of_the_sweep(self) -> dict[str, Any]:
        if not self.combinations:
            return {"type": "exit"}
        values = self.combinations.pop(0)
        return {
            "type": "run",
            "run_id": f"agent-run-{len(self.combinations)}",
            "program": "attnlab",
            "args": {key: {"value": value} for key, value in values.items()},
        }

    def _bucket(self, run_id: str) -> dict[str, Any]:
        run = self.runs[run_id]
        history = run.lines.get("wandb-history.jsonl", {})
        events = run.lines.get("wandb-events.jsonl", {})
        return {
            "id": f"bucket-{run_id}",
            "name": run_id,
            "displayName": run.upsert.get("displayName") or run_id,
            "config": json.dumps({key: {"value": value} for key, value in run.config.items()}),
            "tags": run.upsert.get("tags") or [],
            "notes": None,
            "summaryMetrics": json.dumps(run.summary),
            "historyLineCount": len(history),
            "historyTail": json.dumps([history[max(history)]] if history else []),
            "eventsLineCount": len(events),
            "eventsTail": json.dumps([events[max(events)]] if events else []),
            "logLineCount": 0,
            "wandbConfig": json.dumps({"t": 1}),
        }


def _grid(config: str) -> Iterator[dict[str, Any]]:
    """Every combination of a sweep's values, which travel as JSON."""
    parameters = json.loads(json.dumps(yaml.safe_load(config)["parameters"]))
    for values in itertools.product(*(axis["values"] for axis in parameters.values())):
        yield dict(zip(parameters, values, strict=True))


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # wandb resets its connections when it ends


def _handler(stand_in: StandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: object) -> None:
            pass

        def body(self) -> bytes:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            return gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data

        def reply(self, value: Any) -> None:
            while stand_in.silent.is_set():
                time.sleep(0.02)
            data = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self.reply({})

        def do_PUT(self) -> None:
            _, _, run_id, name = self.path.split("/", 3)
            stand_in.runs[run_id].files[name] = self.body()
            self.reply({})

        def do_POST(self) -> None:
            message = json.loads(self.body())
            if self.path == "/graphql":
                operation = re.search(r"(?:query|mutation)\s+(\w+)", message["query"])[1]
                self.reply({"data": stand_in.answer(operation, message.get("variables") or {})})
            else:  # /files/<entity>/<project>/<run>/file_stream
                stand_in.stream(self.path.split("/")[4], message)
                self.reply({"exitcode": None, "limits": {}})

    return Handler
