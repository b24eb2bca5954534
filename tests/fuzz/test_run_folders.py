"""Run folders whose files were cut, edited or overwritten: what reads them says so in one sentence."""

import contextlib
import io
import shutil
import sys

import pytest
from fuzz.conftest import TINY
from fuzz.counting import cases, one_sentence, refused_well, tried
from hypothesis import example, given
from hypothesis import strategies as st

from attnlab.cli import main
from attnlab.compose import load
from attnlab.errors import UserError
from attnlab.study.cells import ENDS
from attnlab.study.grid import PlannedRun
from attnlab.tracking.status import State, Status
from attnlab.translate import find_run

FILES = ["config.yaml", "status.json", "provenance.json", "metrics.jsonl"]
junk = st.one_of(
    st.binary(max_size=40),
    st.text(max_size=40).map(lambda text: text.encode(errors="replace")),
    st.sampled_from([b"", b"null", b"[]", b"{}", b"5", b'"x"', b"{}\n", b"[1]\n", b"NaN", b"[" * 9999, b"- a\n- b\n", b"a: &x [*x]", b"!!python/object/apply:os.system [ls]"]),
)  # fmt: skip


@st.composite
def damages(draw):
    """What becomes of a file's bytes: cut, a part overwritten, a bit turned, or something else in its place."""
    match draw(st.sampled_from(["cut", "over", "bit", "other"])):
        case "cut":
            share = draw(st.floats(0, 1))
            return lambda content: content[: int(share * len(content))]
        case "over":
            share, patch = draw(st.floats(0, 1)), draw(junk)
            return lambda content: (
                content[: int(share * len(content))]
                + patch
                + content[int(share * len(content)) + len(patch) :]
            )
        case "bit":
            share, bit = draw(st.floats(0, 0.999)), draw(st.integers(0, 7))
            return lambda content: bytes(
                byte ^ (1 << bit) if i == int(share * len(content)) else byte
                for i, byte in enumerate(content)
            )
        case _:
            patch = draw(junk)
            return lambda content: patch


@pytest.fixture(scope="module")
def spare(finished, tmp_path_factory):
    """A copy of the outputs folder to damage, and the run in it as a study's cell would be planned."""
    output = tmp_path_factory.mktemp("spare") / "outputs"
    shutil.copytree(finished.parents[1], output)
    run = PlannedRun((), load([*TINY, f"output={output}"]))
    assert run.folder.path.name == finished.name
    return run


@cases(700)
@given(st.sampled_from(FILES), damages())
def test_a_damaged_folder_is_read_or_refused_in_one_sentence(spare, finished, name, damage):
    tried("run folders: damaged files")
    folder = spare.folder
    (folder.path / name).write_bytes(damage((finished / name).read_bytes()))
    try:
        for read in (
            folder.read_status, folder.read_provenance, folder.read_metrics, folder.state,
            lambda: find_run(str(folder.path), folder.path.parents[1]),
        ):  # fmt: skip
            try:
                read()
            except UserError as error:
                refused_well(error)
    finally:
        shutil.copy(finished / name, folder.path / name)
    assert folder.state() in ENDS


@cases(40)
@given(st.sampled_from(["tokenizer.model", "config.yaml"]), damages())
@example("tokenizer.model", lambda content: content[:50])
@example("config.yaml", lambda content: content.replace(b"d_model: 8", b"d_model: 16"))
def test_a_damaged_run_translates_or_says_why_not(spare, finished, name, damage):
    tried("run folders: translate")
    folder, said, shown = spare.folder, io.StringIO(), io.StringIO()
    (folder.path / name).write_bytes(damage((finished / name).read_bytes()))
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(b"The dog sleeps.\n"))
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(shown):
            code = main(["translate", str(folder.path)])
    finally:
        sys.stdin = before
        shutil.copy(finished / name, folder.path / name)
    assert code in (0, 2)
    assert code == 0 or one_sentence(said.getvalue().removesuffix("\n")), said.getvalue()


@cases(60)
@given(st.lists(st.binary(max_size=20), max_size=4))
def test_any_line_of_stdin_is_translated_or_named(finished, lines):
    tried("translate: any line")
    shown, said = io.StringIO(), io.StringIO()
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(b"".join(line + b"\n" for line in lines)))
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(shown):
            code = main(["translate", str(finished)])
    finally:
        sys.stdin = before
    whole = b"".join(line + b"\n" for line in lines)
    bad = [number for number, line in enumerate(whole.split(b"\n"), start=1) if not _is_utf8(line)]
    assert code == (2 if bad else 0)
    if bad:
        assert f"line {bad[0]} is not UTF-8" in said.getvalue()
    else:
        assert shown.getvalue().count("\n") == whole.count(b"\n")


def _is_utf8(line):
    return line.decode(errors="ignore").encode() == line


@cases(140)
@given(
    st.sampled_from(list(State)), st.one_of(st.none(), st.text()), st.lists(st.text(max_size=9)),
    st.dictionaries(st.text(max_size=9), st.floats()), st.integers(0, 10**12),
)  # fmt: skip
def test_a_status_comes_back_as_it_was(state, error, alarms, results, step):
    tried("status.json: there and back")
    try:
        "".join([error or "", *alarms, *results]).encode()
    except UnicodeEncodeError:  # halves of characters are in no file
        return
    status = Status(state, step, error, alarms, results=results, alarm_kinds=alarms)
    assert repr(Status.from_json(status.to_json())) == repr(status)  # repr: NaN is NaN
