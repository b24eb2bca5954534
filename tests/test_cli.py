"""The command line as its user meets it."""

import io
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from end_to_end.conftest import SMALL

import attnlab
from attnlab.cli import main
from attnlab.compose import load
from attnlab.run import run

ROOT = Path(attnlab.__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    output = tmp_path_factory.mktemp("cli") / "outputs"
    return run(load([*SMALL, f"output={output}", "track=none"]), bar=False)


def test_help_of_run_shows_groups_choices_and_examples(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["run", "--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    for word in (
        "attention",
        "zero_fill",
        "multi30k",
        "nano",
        "attnlab run attention=no_scale seed=2",
        "experiment=demo",
    ):
        assert word in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "model.heads=3"], "model.heads"),
        (["run", "experiment=nope"], "demo"),
        (["plan"], "experiment"),
        (["translate", "nope"], "nope"),
        (["translate", "nope", "--protocol", "other"], "prefix, cached"),
        (["page", "--only", "S99"], "S01 to S69"),
        (["check", "nope"], "package.module:name"),
        (["run", "data=files", "data.dir=/nowhere"], "/nowhere"),
    ],
)
def test_a_user_s_mistake_is_one_sentence_and_exit_code_2(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    shown = capsys.readouterr().err.strip()
    assert shown.split("\n")[-1].startswith("attnlab: ")
    assert words in shown
    assert "Traceback" not in shown


def test_show_prints_the_resolved_config_and_writes_nothing(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--show", "attention=zero_fill"]) == 0
    shown = capsys.readouterr().out
    assert "mask_fill: 0.0" in shown
    assert "# run id " in shown
    assert list(tmp_path.iterdir()) == []


def test_translate_gives_one_line_each_in_order(finished, capsys, monkeypatch):
    lines = ["The dog sleeps.", "", "The cat sees the dog.", "The dog sleeps."]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))
    assert main(["translate", str(finished.folder.path)]) == 0
    shown = capsys.readouterr().out.split("\n")
    assert len(shown) == 5
    assert shown[0] == shown[3]
    assert shown[1] == ""


def test_translate_names_the_line_that_is_not_utf_8(finished, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"fine\n\xff\xfe\n")))
    assert main(["translate", finished.run_id, "--output", str(finished.folder.path.parents[1])]) == 2
    assert "line 2" in capsys.readouterr().err


def test_importing_the_command_line_is_quick_and_brings_no_torch():
    code = (
        "import sys, attnlab.cli; print(sorted({'torch', 'wandb', 'datasets', 'hydra'} & set(sys.modules)))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


def test_a_run_without_a_tracker_imports_no_optional_package(tmp_path):
    code = (
        "import sys; from attnlab.cli import main; "
        f"main({['run', *SMALL, 'train.steps=0', 'train.warmup=0', f'output={tmp_path}', 'track=none']!r}); "
        "print(sorted({'wandb', 'datasets', 'matplotlib', 'transformers', 'scipy'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip().split("\n")[-1] == "[]"


def test_training_does_not_import_torchs_compiler(tmp_path):
    """1.2 s of each process, for a decorator of torch's optimisers."""
    code = (
        "import sys; from attnlab.cli import main; "
        f"main({['run', *SMALL, f'output={tmp_path}', 'track=none', 'device=cpu']!r}); print('torch._dynamo' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip().split("\n")[-1] == "False"


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="needs the checkout")
def test_the_wheel_carries_conf_and_works_from_any_folder(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)],
        check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "attnlab/conf/config.yaml" in names
    assert "attnlab/conf/experiment/demo.yaml" in names
    home = tmp_path / "venv"
    venv.create(home, system_site_packages=True, with_pip=True)
    python = home / "bin" / "python"
    parent = next(path for path in map(Path, sys.path) if (path / "torch").is_dir())
    subprocess.run(
        [python, "-m", "pip", "install", "--no-deps", "--quiet", str(wheel)], check=True, capture_output=True
    )
    shown = subprocess.run(
        [python, "-m", "attnlab", "run", "--show"], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(parent), "PATH": ""},
    ).stdout  # fmt: skip
    assert "# run id" in shown
