"""What each verb of the command line does with its arguments; returns the exit code.

What a verb needs is imported in it: a mistake in the arguments is told before torch has been loaded.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.errors import UserError
from attnlab.terminal import show

if TYPE_CHECKING:
    from attnlab.data.tokenizer import Tokenizer
    from attnlab.model.transformer import Transformer


def run(arguments: argparse.Namespace) -> int:
    from attnlab.compose import load
    from attnlab.identity import plain, run_id

    if any(item.startswith("experiment=") and item != "experiment=null" for item in arguments.overrides):
        return run_study(arguments)
    config = load(arguments.overrides)
    if arguments.show:
        from omegaconf import OmegaConf

        show(OmegaConf.to_yaml(OmegaConf.create(plain(config))), end="")
        show(f"# run id {run_id(config)}")
        return 0
    from attnlab.run import run
    from attnlab.summary import summary

    outcome = run(config)
    show(summary(outcome))
    return 0


def run_study(arguments: argparse.Namespace) -> int:
    from attnlab.study.expected import registered, without_cell
    from attnlab.study.grid import expand
    from attnlab.study.launch import launch
    from attnlab.summary import study_table
    from attnlab.tracking.status import State
    from attnlab.tracking.wandb_agent import refuse_many_runs

    study = expand(arguments.overrides)
    if arguments.show:
        return plan(arguments)
    refuse_many_runs(len(study.runs))
    if line := without_cell(study, registered(study)):
        show(line, file=sys.stderr)
    states = launch(study)
    show(study_table(study))
    return 0 if all(state in (State.done, State.diverged) for state in states.values()) else 1


def plan(arguments: argparse.Namespace) -> int:
    from attnlab.study.expected import registered, without_cell
    from attnlab.study.grid import expand
    from attnlab.study.plan import plan

    study = expand(arguments.overrides)
    show(plan(study))
    if line := without_cell(study, registered(study)):
        show(line)
    return 0


def table(arguments: argparse.Namespace) -> int:
    from attnlab.study import render, table
    from attnlab.study.expected import path_of, registered
    from attnlab.study.grid import expand

    study = expand(arguments.overrides)
    claims = registered(study)
    made = table.build(
        study, arguments.overrides, claims, allow_mixed=arguments.allow_mixed, partial=arguments.partial
    )
    show(render.markdown(made))
    for path in table.write(made, arguments.out or study.tables(arguments.partial)):
        show(path, file=sys.stderr)
    if not claims:
        show(f"attnlab: no claims were judged: there are none in {path_of(study)}", file=sys.stderr)
    return 0


def report(arguments: argparse.Namespace) -> int:
    if arguments.along is not None and arguments.figure is None:
        raise UserError(f"--along: got {arguments.along} without --figure, allowed: with a table.csv")
    if arguments.figure is not None:
        from attnlab.report import headline, response

        if arguments.overrides or arguments.serve:
            raise UserError(
                f"--figure: got {arguments.figure} beside a study or --serve, allowed: alone or with --out"
            )
        if arguments.along is None:
            show(headline.draw(arguments.figure, arguments.out))
        else:
            show(response.draw(arguments.figure, arguments.along, arguments.out))
        return 0
    from attnlab.report import command

    port = arguments.port if arguments.serve else None
    path = command.run(
        arguments.overrides,
        out=arguments.out,
        allow_mixed=arguments.allow_mixed,
        partial=arguments.partial,
        port=port,
    )
    if path is not None:
        show(path)
    return 0


def translate(arguments: argparse.Namespace) -> int:
    from attnlab.translate import translate_lines

    translate_lines(
        arguments.run,
        Path(arguments.output),
        arguments.protocol,
        arguments.beam,
        sys.stdin.buffer,
        sys.stdout,
    )
    return 0


def inspect(arguments: argparse.Namespace) -> int:
    from attnlab.translate import find_run

    find_run(arguments.run, Path(arguments.output))  # before two seconds go into loading torch
    from attnlab.inspection import inspect

    show(
        inspect(
            arguments.run, Path(arguments.output), arguments.source, arguments.query, arguments.sentences,
            arguments.figure, arguments.json,
        )
    )  # fmt: skip
    return 0


def page(arguments: argparse.Namespace) -> int:
    from attnlab.theory import page

    def load_model(run: str) -> tuple[Transformer, Tokenizer]:
        from attnlab.translate import load_run

        trained = load_run(run, Path(arguments.output))
        return trained.model, trained.tokenizer

    return page.run(arguments.only, arguments.json, arguments.released, arguments.run, load_model)


def theory(arguments: argparse.Namespace) -> int:
    from attnlab.theory import results

    for path in results.write(Path(arguments.folder)):
        show(path)
    return 0


def check(arguments: argparse.Namespace) -> int:
    from attnlab.theory.detectors import command

    return command.run(
        arguments.target, arguments.mask, arguments.causal, arguments.positions, arguments.heads, arguments.width,
        arguments.json,
    )  # fmt: skip


def bench(arguments: argparse.Namespace) -> int:
    from attnlab.bench import command

    return command.run(arguments)


def sync(arguments: argparse.Namespace) -> int:
    from attnlab.tracking.sync import sync

    sync(Path(arguments.output), dry_run=arguments.dry_run)
    return 0


def workspace(arguments: argparse.Namespace) -> int:
    from attnlab.study.cells import run_command
    from attnlab.study.grid import expand
    from attnlab.tracking.workspace.facts import facts_of
    from attnlab.tracking.workspace.save import save
    from attnlab.tracking.workspace.sweep import sweep

    study = expand(arguments.overrides)
    if arguments.sweep:
        listed = len(study.base.study.cells)
        grid = expand([*arguments.overrides, "study.cells=[]"]) if listed else study
        show(sweep(grid, listed), end="")
        return 0
    table = Path("experiments") / study.name / "results" / "table.md"
    text = table.read_text(encoding="utf-8") if table.exists() else None
    show(save(facts_of(study, run_command(arguments.overrides)), Path(study.base.output), text))
    return 0


def dashboard(arguments: argparse.Namespace) -> int:
    from attnlab.tracking.sync import dashboard

    dashboard(Path(arguments.output))
    return 0
