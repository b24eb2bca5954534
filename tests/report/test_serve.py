"""The live report: what it answers, to whom, and that it follows the runs. Requests are written to the socket by hand."""

import http.client
import json
import socket
import threading

import pytest
from made_runs import lab, write

from attnlab.errors import UserError
from attnlab.report.command import live
from attnlab.report.serve import ADDRESS, server


@pytest.fixture
def made(tmp_path):
    found = lab(tmp_path / "outputs", ["correct", "zero_fill"], [1])
    write(found.runs[0].config)
    (tmp_path / "outputs" / "secret.txt").write_text("SECRET")
    (tmp_path / "secret.txt").write_text("SECRET")
    (tmp_path / "outputs" / "runs" / "link").symlink_to(tmp_path / "secret.txt")
    return found


@pytest.fixture
def port(made):
    yield from _running([f"output={made.output}"])


def _running(overrides):
    running = server(live(overrides, allow_mixed=False), 0)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield running.server_address[1]
    running.shutdown()
    running.server_close()
    thread.join()


def ask(port, path, method="GET", host=None):
    connection = http.client.HTTPConnection(ADDRESS, port, timeout=30)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", host if host is not None else f"{ADDRESS}:{port}")
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_the_page_and_its_data(port, made):
    answer, body = ask(port, "/")
    assert (answer.status, answer.getheader("Content-Type")) == (200, "text/html; charset=utf-8")
    assert body.startswith(b"<!doctype html>")
    data = json.loads(ask(port, "/data")[1])
    assert (data["kind"], len(data["runs"])) == ("runs", 1)
    assert data["version"] == ask(port, "/version")[1].decode()


def test_a_new_run_changes_version_and_data(port, made):
    before = ask(port, "/version")[1]
    assert len(json.loads(ask(port, "/data")[1])["runs"]) == 1
    write(made.runs[1].config)
    assert ask(port, "/version")[1] != before
    assert len(json.loads(ask(port, "/data")[1])["runs"]) == 2


@pytest.mark.parametrize(
    "path",
    ["/secret.txt", "/../secret.txt", "/..%2fsecret.txt", "/%2e%2e/secret.txt", "//etc/passwd", "/runs/link",
     "/runs/link/../../secret.txt", "/data/", "/version?", "/\\..\\secret.txt", "http://x/", "/.", "*"],
)  # fmt: skip
def test_no_other_path_is_answered(port, path):
    answer, body = ask(port, path)
    assert answer.status == 404
    assert b"SECRET" not in body


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "127.0.0.1", "localhost:1"])
def test_another_name_of_this_machine_is_refused(port, host):
    """DNS rebinding: a page of another site has its own name point at 127.0.0.1."""
    assert ask(port, "/data", host=host)[0].status == 403


def test_localhost_is_answered(port):
    assert ask(port, "/version", host=f"localhost:{port}")[0].status == 200


def test_it_can_be_read_and_not_written(port):
    assert ask(port, "/", method="HEAD")[1] == b""
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert ask(port, "/", method=method)[0].status == 501


def test_it_is_bound_to_this_machine_alone(made):
    running = server(live([f"output={made.output}"], allow_mixed=False), 0)
    try:
        assert running.socket.getsockname()[0] == "127.0.0.1"
        assert running.socket.family is socket.AF_INET
    finally:
        running.server_close()


@pytest.mark.parametrize("port", [-1, 70000])
def test_a_port_that_is_none(made, port):
    with pytest.raises(UserError, match="--port"):
        server(live([f"output={made.output}"], allow_mixed=False), port)


def test_a_port_that_is_taken(made, port):
    with pytest.raises(UserError, match="--port"):
        server(live([f"output={made.output}"], allow_mixed=False), port)


def test_a_study_is_explored_until_it_is_whole(made):
    stranger = lab(made.output, ["correct"], [9])
    write(stranger.runs[0].config)
    running = _running(made.overrides)
    port = next(running)
    part = json.loads(ask(port, "/data")[1])
    assert part["kind"] == "runs"
    assert len(part["runs"]) == 1  # the study's alone
    assert "1 of its 2 runs" in part["notes"][0]
    write(made.runs[1].config)
    whole = json.loads(ask(port, "/data")[1])
    assert (whole["kind"], len(whole["runs"])) == ("study", 2)
    next(running, None)
