"""Where a table's numbers come from, and whether its runs may stand in one table."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from attnlab.config import Config
from attnlab.errors import UserError
from attnlab.identity import plain
from attnlab.study.cells import Cell, SeedRun, run_command

# Packages whose version can change a number. Others are named in the footer and may differ.
DECIDING = ("attnlab", "torch", "numpy", "sentencepiece", "sacrebleu")
_NOT_OF_THE_RESULT = ("output", "launch", "track", "force", "retry", "fail_fast", "threads", "device")


@dataclass(frozen=True)
class Origin:
    """`lines`: (name, text) for the footer. `mixed`: what differs between runs although the study does not change it."""

    lines: list[tuple[str, str]]
    mixed: list[str]


def trace(cells: Sequence[Cell], overrides: Sequence[str], allow_mixed: bool) -> Origin:
    """The footer of a table. Raises UserError for data, code or decoding that differ, unless they are allowed to."""
    runs = [run for cell in cells for run in cell.runs]
    sessions = [session for run in runs for session in _sessions(run)]
    mixed = _mixed(runs, sessions)
    if mixed and not allow_mixed:
        raise UserError(
            f"table: got runs with different {' and '.join(mixed)}, allowed: runs of one kind, made again by "
            f"`{run_command([*overrides, 'force=true'])}`, or --allow-mixed"
        )
    kept = portable(overrides)
    configs = [run.config for run in runs]
    lines = [
        ("table", f"attnlab table {shlex.join(kept)}{' --allow-mixed' if allow_mixed else ''}"),
        ("runs", run_command(kept)),
        ("code", _several(map(_code, sessions))),
        ("commits", _several(map(_commit, sessions))),
        ("versions", _several(_versions(session) for session in sessions)),
        ("devices", _several(session["device"] for session in sessions)),
        ("seeds", ", ".join(str(seed) for seed in sorted({run.seed for run in runs}))),
        ("training", _several(map(_training, configs))),
        ("decoding", _several(map(_decoding, configs))),
        ("scores", _several(f"{name} {text}" for run in runs for name, text in _signatures(run))),
        ("data", _several(map(_data, (run for run in runs if run.provenance)))),
    ]
    return Origin(lines, mixed)


def portable(overrides: Sequence[str]) -> list[str]:
    """Overrides as they may stand in a table: paths and launchers change no number, and a table from folders that
    were copied elsewhere must have the same bytes. Where the text lies is left to whoever repeats the command.
    """
    kept = [item for item in overrides if item.partition("=")[0].split(".")[0] not in _NOT_OF_THE_RESULT]
    return ["data.dir=FOLDER" if item.startswith("data.dir=") else item for item in kept]


def _sessions(run: SeedRun) -> list[dict[str, Any]]:
    """A resumed run has several; each of them made a part of its numbers."""
    return [*run.provenance["earlier"], run.provenance] if run.provenance else []


def _mixed(runs: Sequence[SeedRun], sessions: Sequence[dict[str, Any]]) -> list[str]:
    found = []
    # By settings: a study may change the data or the vocabulary, but one setting stands for one text.
    texts: dict[str, set[tuple[str, str]]] = {}
    for run in runs:
        if run.provenance:
            settings = json.dumps({**plain(run.config.data), "dir": None}, sort_keys=True)
            known = (run.provenance["data_digest"], run.provenance["tokenizer_digest"])
            texts.setdefault(settings, set()).add(known)
    if different := sorted({digest for kinds in texts.values() if len(kinds) > 1 for digest, _ in kinds}):
        found.append(f"data ({', '.join(digest[:10] for digest in different)})")
    if len(codes := {_code(session) for session in sessions}) > 1:
        found.append(f"code ({', '.join(sorted(codes))})")
    for package in DECIDING:
        versions = {str(session["versions"].get(package)) for session in sessions}
        if len(versions) > 1:
            found.append(f"{package} ({', '.join(sorted(versions))})")
    signatures: dict[str, set[str]] = {}
    for run in runs:
        for name, text in _signatures(run):
            signatures.setdefault(name.partition("/")[2], set()).add(text)
    if any(len(texts) > 1 for texts in signatures.values()):
        found.append("BLEU signatures")
    return found


def _code(session: dict[str, Any]) -> str:
    """What decides the numbers: the digest of the sources, or the commit where an older run has none."""
    return f"sources {session['code_digest'][:10]}" if "code_digest" in session else _commit(session)


def _commit(session: dict[str, Any]) -> str:
    git = session["git"]
    if git is None:
        return "no git commit"
    return git["commit"][:10] + (" with uncommitted changes" if git["dirty"] else "")


def _versions(session: dict[str, Any]) -> str:
    return " ".join(f"{name} {version}" for name, version in session["versions"].items() if version)


def _training(config: Config) -> str:
    train = config.train
    return (
        f"{train.steps} steps of {train.batch_tokens} tokens, {train.schedule}, lr {train.lr:g}, "
        f"warmup {train.warmup}, {train.precision}"
    )


def _decoding(config: Config) -> str:
    decode = config.decode
    sentences = "all" if decode.sentences is None else str(decode.sentences)
    return (
        f"protocols {', '.join(decode.protocols)}; beam {decode.beam}, length penalty {decode.length_penalty:g}, at most "
        f"{decode.max_length_factor:g} x source + {decode.max_length_extra} pieces; {sentences} test sentences"
    )


def _data(run: SeedRun) -> str:
    known = run.provenance
    return f"{run.config.data.name} {known['data_digest'][:16]}, vocabulary {known['tokenizer_digest'][:16]}"


def _signatures(run: SeedRun) -> list[tuple[str, str]]:
    return sorted(run.provenance.get("signatures", {}).items())


def _several(texts: Iterable[str]) -> str:
    """Each text once, in an order of its own; `-` for none."""
    return " | ".join(sorted(set(texts))) or "-"
