from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

import attnlab
from attnlab.tracking import provenance
from attnlab.tracking.code_digest import code_digest
from attnlab.tracking.files import dump_json
from attnlab.tracking.provenance import collect, read_git


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    package = tmp_path / "checkout" / "src" / "attnlab"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("one\n")
    git(tmp_path / "checkout", "init", "--quiet")
    git(tmp_path / "checkout", "add", ".")
    git(tmp_path / "checkout", "commit", "--quiet", "-m", "first")
    return package


def test_the_commit_of_a_clean_checkout(checkout: Path) -> None:
    found = read_git(checkout)
    assert found.commit == git(checkout, "rev-parse", "HEAD")
    assert not found.dirty


@pytest.mark.parametrize("change", ["changed", "new"])
def test_a_changed_or_new_file_makes_it_dirty(checkout: Path, change: str) -> None:
    (checkout / {"changed": "__init__.py", "new": "extra.py"}[change]).write_text("two\n")
    assert read_git(checkout).dirty


def test_a_git_hooks_variables_do_not_mislead(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert read_git(checkout) is not None


def test_a_package_installed_inside_another_repository_has_no_commit(checkout: Path) -> None:
    installed = checkout.parents[1] / ".venv" / "lib" / "attnlab"
    installed.mkdir(parents=True)
    assert read_git(installed) is None


def test_no_repository_no_commit_and_no_git_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "plain" / "src" / "attnlab"
    package.mkdir(parents=True)
    assert read_git(package) is None
    git(tmp_path / "plain", "init", "--quiet")
    assert read_git(package) is None  # no commit yet
    monkeypatch.setenv("PATH", "")
    assert read_git(package) is None


def test_everything_is_named_and_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "a-secret-key")
    monkeypatch.setattr(sys, "argv", ["attnlab", "run", "data.dir=with space"])
    found = collect(device=torch.device("cpu"), threads=1, seed=7, data_digest="d1", tokenizer_digest="t1")
    text = dump_json(asdict(found))
    assert "a-secret-key" not in text
    record = json.loads(text)
    assert record["command"] == "attnlab run 'data.dir=with space'"
    assert (record["seed"], record["threads"]) == (7, 1)
    assert record["code_digest"] == code_digest()
    assert (record["data_digest"], record["tokenizer_digest"]) == ("d1", "t1")
    assert record["versions"]["torch"] == torch.__version__
    assert record["versions"]["attnlab"] == attnlab.__version__
    assert record["versions"]["python"] == sys.version.split()[0]
    assert all(
        record["versions"][name]
        for name in ("numpy", "hydra-core", "omegaconf", "sentencepiece", "sacrebleu")
    )
    assert record["device"]
    assert record["started"].endswith("+00:00")


def test_a_missing_package_is_null(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "_PACKAGES", ("no-such-package-anywhere",))
    found = collect(device=torch.device("cpu"), threads=1, seed=1, data_digest="", tokenizer_digest="")
    assert found.versions["no-such-package-anywhere"] is None
