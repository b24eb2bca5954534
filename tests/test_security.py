"""What comes from outside is data: it is never run, never acts on a terminal, and no secret of the user's is kept."""

import ast
import io
import json
import os
import pickle
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from end_to_end.conftest import SMALL

import attnlab
from attnlab.cli import main
from attnlab.compose import load
from attnlab.errors import UserError
from attnlab.run import run
from attnlab.study.board import Board
from attnlab.summary import summary
from attnlab.terminal import printable, show
from attnlab.texts import without_secrets
from attnlab.tracking.provenance import collect
from attnlab.tracking.status import State, Status
from attnlab.training import checkpoint

SOURCES = Path(attnlab.__file__).parent
# Clears the screen, sets the title, writes into the clipboard (OSC 52), one-byte CSI, goes back over the line, hides.
ESCAPES = [
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\x1b]52;c;ZXZpbA==\x07",
    "\x9b31m",
    "over\rwritten",
    "\b\b\b",
    "\x7f",
    "\u202eesrever",
]
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
SECRET = "s3cr3t-0123456789-of-the-user"
SECRET_NAMES = [
    "WANDB_API_KEY",
    "HF_TOKEN",
    "MY_PASSWORD",
    "AWS_SECRET_ACCESS_KEY",
    "service_token",
    "SOME_SECRET",
]


# ---------------------------------------------------------------- terminal


@pytest.fixture(autouse=True)
def nothing_left_of_wandb() -> Iterator[None]:
    """A key that W&B has seen would be there in the tests that follow in this process."""
    yield
    if "wandb" in sys.modules:
        sys.modules["wandb"].teardown()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    output = tmp_path_factory.mktemp("security") / "outputs"
    return run(load([*SMALL, "train.steps=2", "train.warmup=1", f"output={output}", "track=none"]), bar=False)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("text", ["plain, ümlaut, 中文, 😀, עברית", "a table\n  of\tcells"])
def test_ordinary_text_is_shown_as_it_is(text):
    assert printable(text) == text


@pytest.mark.parametrize("escape", ESCAPES)
def test_a_setting_with_control_characters_is_refused_and_shown_spelled_out(escape, capsys, tmp_path):
    for key in ("attention.name", "data.name", "model.heads", "attention", "nope", "output"):
        code = main(["run", "--show", f"{key}='{escape}'"])
        shown = capsys.readouterr()
        assert not ACTING.search(shown.out + shown.err)
        assert code == 2 or (escape.isascii() is False and not re.search("[\x00-\x1f\x7f-\x9f]", escape))
    assert main(["translate", escape, "--output", str(tmp_path)]) == 2
    assert not ACTING.search(capsys.readouterr().err)


@pytest.mark.parametrize("verb", ["plan", "table"])
def test_a_study_s_overrides_and_alarms_do_not_act(verb, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main([verb, "experiment=demo", "data.name=\u202eevil,\u202eother"])
    shown = capsys.readouterr()
    assert not ACTING.search(shown.out + shown.err)
    assert "\\u202e" in shown.out + shown.err


def test_what_a_run_folder_says_does_not_act(finished, capsys):
    """A folder that somebody sent: its status holds what they like."""
    status = Status(
        State.failed, error="\x1b[2Jfailed", alarms=["\x1b]0;x\x07alarm"], results={"test/\x1b[31m": 1.0}
    )
    outcome = type(finished)(finished.run_id, finished.folder, status)
    show(summary(outcome))
    board = Board([])
    board.say("\x1b[2J and \r the rest")
    shown = capsys.readouterr()
    assert not ACTING.search(shown.out + shown.err)
    assert "\\u001b[2Jfailed" in shown.out


def _translated(finished, monkeypatch, target):
    from attnlab.measure import decode

    monkeypatch.setattr(decode, "translate", lambda *_: ["\x1b[2Jevil\x9b31m"])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"The dog sleeps.\n")))
    monkeypatch.setattr(sys, "stdout", target)
    assert main(["translate", str(finished.folder.path)]) == 0
    return target.getvalue()


def test_a_translation_is_itself_in_a_pipe_and_spelled_out_on_a_terminal(finished, monkeypatch):
    assert _translated(finished, monkeypatch, io.StringIO()) == "\x1b[2Jevil\x9b31m\n"
    assert _translated(finished, monkeypatch, Terminal()) == "\\u001b[2Jevil\\u009b31m\n"


def test_nothing_is_printed_past_the_door():
    """`print` is left to what prints nothing from outside: fixed sentences, a counter line, numbers."""
    allowed = {
        "cli.py": 1, "terminal.py": 1, "progress.py": 2, "study/board.py": 2, "report/serve.py": 2,
        "theory/page/__init__.py": 1, "theory/detectors/__init__.py": 1, "theory/detectors/matrix.py": 1,
        "theory/detectors/command.py": 1,
    }  # fmt: skip
    found = {}
    for path in sorted(SOURCES.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
        ]
        name = path.relative_to(SOURCES).as_posix()
        if calls and not name.startswith("bench/"):
            found[name] = len(calls)
    assert found == {name: count for name, count in allowed.items() if name in found}


# ---------------------------------------------------------------- code from outside


class Evil:
    def __reduce__(self):
        return os.mkdir, ("pwned",)


def test_R55_a_foreign_pickle_is_refused_and_not_run(tmp_path, finished, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, content in (("plain.pt", pickle.dumps(Evil())), ("zipped.pt", None)):
        path = tmp_path / name
        if content is None:
            import torch

            torch.save({"model": Evil()}, path)
        else:
            path.write_bytes(content)
        with pytest.raises(UserError):
            checkpoint.load(path)
    folder = tmp_path / "copied"
    shutil.copytree(finished.folder.path, folder)
    shutil.copy(tmp_path / "zipped.pt", folder / "checkpoint.pt")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"The dog sleeps.\n")))
    assert main(["translate", str(folder)]) == 2
    assert not (tmp_path / "pwned").exists()


def test_yaml_of_a_run_folder_makes_no_objects(tmp_path, finished, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "copied"
    shutil.copytree(finished.folder.path, folder)
    (folder / "config.yaml").write_text("!!python/object/apply:os.mkdir [pwned]\n")
    assert main(["translate", str(folder)]) == 2
    assert not (tmp_path / "pwned").exists()


FORBIDDEN_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
FORBIDDEN_CALLS = {"eval", "exec", "os.system", "os.popen", "yaml.load", "np.load"}


def test_no_source_loads_objects_or_runs_code_of_others():
    """By the syntax tree: pickle, unsafe loaders, eval and shells. `torch.load` says weights_only each time."""
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            where = f"{path.relative_to(SOURCES)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import):
                assert not {name.name for name in node.names} & FORBIDDEN_MODULES, where
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            given_names = {one.arg: ast.unparse(one.value) for one in node.keywords}
            assert called not in FORBIDDEN_CALLS, where
            if "bench/systems/external.py" not in where:  # runs what its user types after --external
                assert given_names.get("shell", "False") == "False", where
            assert "trust_remote_code" not in given_names, where
            if called == "torch.load":
                assert given_names["weights_only"] == "True", where


# ---------------------------------------------------------------- secrets


def _files_with(folder, text):
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_no_secret_of_the_environment_is_in_any_file_of_a_run(tmp_path, monkeypatch):
    """W&B notes a program's arguments by itself, so a library's user may have secrets there."""
    key = "feed" * 10  # W&B takes keys of 40 characters alone
    for name in SECRET_NAMES:
        monkeypatch.setenv(name, f"{SECRET}-{name}" if name != "WANDB_API_KEY" else key)
    monkeypatch.setattr(sys, "argv", ["train.py", "--token", f"{SECRET}-HF_TOKEN", key])
    overrides = [*SMALL, "train.steps=2", "train.warmup=1", f"output={tmp_path / 'outputs'}", "track=wandb"]
    outcome = run(load(overrides), bar=False)
    assert outcome.status.state is State.done
    assert list(tmp_path.rglob("*.wandb"))
    assert [_files_with(tmp_path, text) for text in (SECRET, key)] == [[], []]
    command = json.loads((outcome.folder.path / "provenance.json").read_text())["command"]
    assert command == "train.py --token $HF_TOKEN $WANDB_API_KEY"  # as it can be called again
    assert sys.argv[-1] == key


@pytest.mark.parametrize(
    "override",
    ["data.name=X{}Y", "track.tags=[a,{}]", "+launch.options.setup=['export KEY={}']", "data.name=${{oc.env:HF_TOKEN}}",
     "+launch.options.key=${{oc.env:HF_TOKEN}}", "model.heads={}", "nope={}"],
)  # fmt: skip
def test_a_secret_among_the_settings_is_refused_and_not_repeated(override, monkeypatch, capsys):
    monkeypatch.setenv("HF_TOKEN", SECRET)
    assert main(["run", "--show", override.format(SECRET)]) == 2
    shown = capsys.readouterr()
    assert SECRET not in shown.out + shown.err
    assert "HF_TOKEN" in shown.err


def test_short_values_and_other_variables_are_no_secrets(monkeypatch):
    monkeypatch.setenv("SORT_KEY", "tiny")
    monkeypatch.setenv("HOME_TOWN", "multi30k-long-name")
    assert load(["data.name=multi30k-long-name", "model=tiny"]).data.name == "multi30k-long-name"


def test_a_traceback_that_quotes_a_secret_names_it(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", SECRET)
    text = Status(State.failed, error=f"ValueError: bad header 'Bearer {SECRET}'").to_json()
    assert SECRET not in text
    assert "Bearer $HF_TOKEN" in text


def test_of_two_secrets_the_longer_one_is_replaced_first(monkeypatch):
    monkeypatch.setenv("A_KEY", SECRET)
    monkeypatch.setenv("B_KEY", f"{SECRET}-longer")
    assert without_secrets(f"{SECRET}-longer {SECRET}") == "$B_KEY $A_KEY"


def test_the_command_line_in_the_provenance_is_without_secrets(monkeypatch):
    import torch

    monkeypatch.setenv("MY_PASSWORD", SECRET)
    monkeypatch.setattr(sys, "argv", ["attnlab", "run", f"x={SECRET}"])
    known = collect(device=torch.device("cpu"), threads=1, seed=1, data_digest="", tokenizer_digest="")
    assert SECRET not in json.dumps(vars(known), default=str)
