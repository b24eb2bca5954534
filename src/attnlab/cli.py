"""The command line: nothing else parses arguments."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab import __version__
from attnlab.bench import arguments as bench
from attnlab.errors import UserError
from attnlab.terminal import show

if TYPE_CHECKING:
    from attnlab.data.tokenizer import Tokenizer
    from attnlab.model.transformer import Transformer

RUN_EXAMPLES = """
groups (one choice each):
{groups}
examples:
  attnlab run                                           the defaults: grammar corpus, nano model, correct attention
  attnlab run attention=no_scale seed=2                 another arm, another seed
  attnlab run model.heads=8 model.d_k=16 train.steps=500
  attnlab run attention=zero_fill attention.where.layers=[1]    the mistake in the first layer alone
  attnlab run data=files data.dir=path/to/text model=tiny train=multi30k
  attnlab run experiment=demo                           a whole study; seed=1,2 runs it with two seeds
  attnlab run experiment=demo launch.workers=4          four runs side by side; launch=slurm, launch=ray: see conf/launch
  attnlab run track=none                                no W&B; track.mode=online mirrors it live

`attnlab run --show [overrides]` prints the resolved configuration and the run id and trains nothing.
A run whose folder is done returns its result; a partial one goes on from its checkpoint; force=true starts afresh.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code. A user's mistake is one sentence on stderr and exit code 2."""
    arguments = _parser().parse_args(argv)
    try:
        return arguments.act(arguments)
    except UserError as error:
        show(f"attnlab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("attnlab: interrupted; the same command goes on from the last checkpoint", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `attnlab ... | head`
        sys.stderr.close()
        return 141


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="attnlab",
        description="What does each piece of attention buy? Train, look inside, score, compare.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    verbs = parser.add_subparsers(required=True, metavar="verb")

    def verb(
        name: str, act: Callable[[argparse.Namespace], int], help: str, epilog: str | None = None
    ) -> argparse.ArgumentParser:
        child = verbs.add_parser(
            name,
            help=help,
            description=help,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        child.set_defaults(act=act)
        return child

    one = verb(
        "run", _run, "train, measure and score one run, or with experiment=<study> a grid", epilog=_groups()
    )
    one.add_argument(
        "--show", action="store_true", help="print the resolved configuration and the run id, and stop"
    )
    one.add_argument("overrides", nargs="*", help="group=choice or key=value")
    one = verb("plan", _plan, "the runs of a study: id, state, time, impossible cells with the reason")
    one.add_argument("overrides", nargs="*", help="experiment=<study> and further overrides")
    one = verb("table", _table, "a study's runs as a table with intervals and verdicts (extra: figures)")
    one.add_argument("overrides", nargs="*", help="experiment=<study> and the overrides it was run with")
    one.add_argument(
        "--allow-mixed", action="store_true", help="runs of different data, code or versions in one table"
    )
    one.add_argument(
        "--partial", action="store_true", help="a table of the runs that are there; says how many are not"
    )
    one.add_argument(
        "--out", type=Path, metavar="FOLDER",
        help="where to write (default: experiments/<study>/results, and results-<data> for other data than its own)",
    )  # fmt: skip
    one = verb(
        "report",
        _report,
        "a study's page, or with no study all runs to explore, as one HTML file (extra: report)",
    )
    one.add_argument(
        "overrides", nargs="*", help="experiment=<study> and the overrides it was run with, or output="
    )
    one.add_argument(
        "--out",
        type=Path,
        metavar="PATH.html",
        help="where to write (default: <output>/reports/<study>.html)",
    )
    one.add_argument(
        "--allow-mixed", action="store_true", help="runs of different data, code or versions in one page"
    )
    one.add_argument(
        "--partial",
        action="store_true",
        help="of a study: a page of the runs that are there; says how many are not",
    )
    one.add_argument("--serve", action="store_true", help="follow the runs on localhost, until Ctrl-C")
    one.add_argument("--port", type=int, default=8765, help="of --serve; 0: any that is free (default: 8765)")
    one.add_argument(
        "--figure", type=Path, metavar="TABLE.csv",
        help="instead: draw a study's committed table (experiments/<study>/results/table.csv) as headline.png beside it",
    )  # fmt: skip
    one = verb("translate", _translate, "translate stdin to stdout, one line each, in order")
    one.add_argument("run", help="run id or folder")
    one.add_argument("--output", default="outputs", help="folder that holds runs/ (default: outputs)")
    one.add_argument("--protocol", default="prefix", help="prefix (the arm's own code) or cached")
    one.add_argument("--beam", type=int, help="beam size (default: the run's)")
    one = verb(
        "inspect", _inspect, "one sentence through a finished run: tokens, shapes, top keys, alignments"
    )
    one.add_argument("run", help="run id or folder")
    one.add_argument(
        "--source", required=True, metavar="TEXT", help="a sentence in the run's source language"
    )
    one.add_argument(
        "--query", metavar="WORD", help="a word of it, to look from (default: it, or the longest)"
    )
    one.add_argument("--figure", type=Path, metavar="PATH.png", help="also draw heat maps (extra: figures)")
    one.add_argument(
        "--sentences", type=int, default=200, help="dev sentences against the grammar's gold; 0: none"
    )
    one.add_argument("--json", action="store_true", help="JSON in place of text")
    one.add_argument("--output", default="outputs", help="folder that holds runs/ (default: outputs)")
    one = verb("page", _page, "every number printed in the page, recomputed, beside the printed one")
    one.add_argument(
        "--only", action="append", default=[], metavar="ID", help="a result such as S20; may be repeated"
    )
    one.add_argument("--json", action="store_true", help="JSON in place of a table")
    one.add_argument(
        "--released", metavar="PATH_OR_ID", help="folder or Hub id of the page's model (extra: released)"
    )
    one.add_argument("--run", help="a finished run of yours: its numbers, as new ones")
    one.add_argument("--output", default="outputs", help="folder that holds runs/ (default: outputs)")
    one = verb("theory", _theory, "footnote 4 as tables and figures: variance, softmax, gradients, leaks")
    one.add_argument("folder", nargs="?", default="experiments/initialisation/results", help="where to write")
    one = verb("check", _check, "which mistake has an attention of yours? see docs/detectors.md")
    one.add_argument("target", help="package.module:name of an attention, or of a function that makes one")
    one.add_argument("--mask", default="keep", help="what True in its mask means: keep (may attend) or drop")
    one.add_argument("--causal", action="store_true", help="it masks the future by itself")
    one.add_argument("--positions", action="store_true", help="it knows positions (rotary and the like)")
    one.add_argument("--heads", type=int, help="number of heads, where it cannot be read off")
    one.add_argument("--width", type=int, help="width of its input, where it cannot be read off")
    one.add_argument("--json", action="store_true", help="JSON in place of the report")
    one = verb("sync", _sync, "upload offline W&B runs")
    one.add_argument("--output", default="outputs", help="folder that holds wandb/ (default: outputs)")
    one.add_argument("--dry-run", action="store_true", help="only list what would be uploaded")
    one = verb(
        "workspace", _workspace, "save a W&B workspace and a report for a study (extra: wandb-workspaces)"
    )
    one.add_argument("overrides", nargs="*", help="experiment=<study> and the overrides it was run with")
    one.add_argument("--sweep", action="store_true", help="print the study's grid as a W&B sweep, and stop")
    one = verb(
        "bench", _bench, "speed and memory beside others and the limit (extra: bench)", epilog=bench.EXAMPLES
    )
    bench.add(one)
    one = verb("dashboard", _dashboard, "look at the local W&B runs in the terminal (wandb leet)")
    one.add_argument("--output", default="outputs", help="folder that holds wandb/ (default: outputs)")
    return parser


def _groups() -> str:
    from attnlab.compose import groups

    lines = []
    for group in groups():
        names = ", ".join(sorted(path.stem for path in group.glob("*.yaml")))
        lines.append(f"  {group.name:<12}{names}\n")
    return RUN_EXAMPLES.format(groups="".join(lines))


def _run(arguments: argparse.Namespace) -> int:
    from attnlab.compose import load
    from attnlab.identity import plain, run_id

    if any(item.startswith("experiment=") and item != "experiment=null" for item in arguments.overrides):
        return _run_study(arguments)
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


def _run_study(arguments: argparse.Namespace) -> int:
    from attnlab.study.grid import expand
    from attnlab.study.launch import launch
    from attnlab.summary import study_table
    from attnlab.tracking.status import State
    from attnlab.tracking.wandb_agent import refuse_many_runs

    study = expand(arguments.overrides)
    if arguments.show:
        return _plan(arguments)
    refuse_many_runs(len(study.runs))
    states = launch(study)
    show(study_table(study))
    return 0 if all(state in (State.done, State.diverged) for state in states.values()) else 1


def _plan(arguments: argparse.Namespace) -> int:
    from attnlab.study.grid import expand
    from attnlab.study.plan import plan

    show(plan(expand(arguments.overrides)))
    return 0


def _table(arguments: argparse.Namespace) -> int:
    from attnlab.study import render, table
    from attnlab.study.expected import load_claims
    from attnlab.study.grid import expand

    study = expand(arguments.overrides)
    folder = Path("experiments") / str(study.name)
    expected = folder / "expected.yaml"
    claims = load_claims(expected) if expected.exists() else []
    made = table.build(
        study, arguments.overrides, claims, allow_mixed=arguments.allow_mixed, partial=arguments.partial
    )
    show(render.markdown(made))
    for path in table.write(made, arguments.out or folder / study.results):
        show(path, file=sys.stderr)
    if not claims:
        show(f"attnlab: no claims were judged: there are none in {expected}", file=sys.stderr)
    return 0


def _report(arguments: argparse.Namespace) -> int:
    if arguments.figure is not None:
        from attnlab.report.headline import draw

        if arguments.overrides or arguments.serve:
            raise UserError(
                f"--figure: got {arguments.figure} beside a study or --serve, allowed: alone or with --out"
            )
        show(draw(arguments.figure, arguments.out))
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


def _translate(arguments: argparse.Namespace) -> int:
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


def _inspect(arguments: argparse.Namespace) -> int:
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


def _page(arguments: argparse.Namespace) -> int:
    from attnlab.theory import page

    def load_model(run: str) -> tuple[Transformer, Tokenizer]:
        from attnlab.translate import load_run

        trained = load_run(run, Path(arguments.output))
        return trained.model, trained.tokenizer

    return page.run(arguments.only, arguments.json, arguments.released, arguments.run, load_model)


def _theory(arguments: argparse.Namespace) -> int:
    from attnlab.theory import results

    for path in results.write(Path(arguments.folder)):
        show(path)
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from attnlab.theory.detectors import command

    return command.run(
        arguments.target, arguments.mask, arguments.causal, arguments.positions, arguments.heads, arguments.width,
        arguments.json,
    )  # fmt: skip


def _bench(arguments: argparse.Namespace) -> int:
    from attnlab.bench import command

    return command.run(arguments)


def _sync(arguments: argparse.Namespace) -> int:
    from attnlab.tracking.sync import sync

    sync(Path(arguments.output), dry_run=arguments.dry_run)
    return 0


def _workspace(arguments: argparse.Namespace) -> int:
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


def _dashboard(arguments: argparse.Namespace) -> int:
    from attnlab.tracking.sync import dashboard

    dashboard(Path(arguments.output))
    return 0
