"""The command line: nothing else parses arguments. What a verb does is in verbs.py."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from attnlab import __version__, verbs
from attnlab.bench import arguments as bench
from attnlab.errors import UserError
from attnlab.terminal import short, show

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
    except SystemExit as error:  # SIGTERM or SIGHUP, once the run has written its checkpoint
        if not isinstance(error.code, int) or error.code <= 128:
            raise
        show("attnlab: stopped; the same command goes on from the last checkpoint", file=sys.stderr)
        return error.code
    except BrokenPipeError:  # `attnlab ... | head`
        sys.stderr.close()
        return 141
    except OSError as error:  # a path, a disk or a network that nothing asked about before
        where = f" ({error.filename})" if error.filename else ""
        show(f"attnlab: {short(f'{error.strerror or error}{where}', 400)}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="attnlab",
        description="What does each piece of attention buy? Train, look inside, score, compare.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    actions = parser.add_subparsers(required=True, metavar="verb")

    def verb(
        name: str, act: Callable[[argparse.Namespace], int], help: str, epilog: str | None = None
    ) -> argparse.ArgumentParser:
        child = actions.add_parser(
            name,
            help=help,
            description=help,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        child.set_defaults(act=act)
        return child

    one = verb(
        "run",
        verbs.run,
        "train, measure and score one run, or with experiment=<study> a grid",
        epilog=_groups(),
    )
    one.add_argument(
        "--show", action="store_true", help="print the resolved configuration and the run id, and stop"
    )
    one.add_argument("overrides", nargs="*", help="group=choice or key=value")
    one = verb("plan", verbs.plan, "the runs of a study: id, state, time, impossible cells with the reason")
    one.add_argument("overrides", nargs="*", help="experiment=<study> and further overrides")
    one = verb("table", verbs.table, "a study's runs as a table with intervals and verdicts (extra: figures)")
    one.add_argument("overrides", nargs="*", help="experiment=<study> and the overrides it was run with")
    one.add_argument(
        "--allow-mixed", action="store_true", help="runs of different data, code or versions in one table"
    )
    one.add_argument(
        "--partial", action="store_true", help="a table of the runs that are there; says how many are not"
    )
    one.add_argument(
        "--out", type=Path, metavar="FOLDER",
        help="where to write (default: experiments/<study>/results for the study as registered, results-<data> on another text, <output>/tables/<study> for all else)",
    )  # fmt: skip
    one = verb(
        "report",
        verbs.report,
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
    one.add_argument(
        "--along", metavar="KEY",
        help="of --figure: loss and BLEU along this setting, such as model.d_k, as response.png",
    )  # fmt: skip
    one = verb("translate", verbs.translate, "translate stdin to stdout, one line each, in order")
    one.add_argument("run", help="run id or folder")
    one.add_argument("--output", default="outputs", help="folder that holds runs/ (default: outputs)")
    one.add_argument("--protocol", default="prefix", help="prefix (the arm's own code) or cached")
    one.add_argument("--beam", type=int, help="beam size (default: the run's)")
    one = verb(
        "inspect", verbs.inspect, "one sentence through a finished run: tokens, shapes, top keys, alignments"
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
    one = verb("page", verbs.page, "every number printed in the page, recomputed, beside the printed one")
    one.add_argument(
        "--only", action="append", default=[], metavar="ID", help="a result such as S20; may be repeated"
    )
    one.add_argument("--json", action="store_true", help="JSON in place of a table")
    one.add_argument(
        "--released", metavar="PATH_OR_ID", help="folder or Hub id of the page's model (extra: released)"
    )
    one.add_argument("--run", help="a finished run of yours: its numbers, as new ones")
    one.add_argument("--output", default="outputs", help="folder that holds runs/ (default: outputs)")
    one = verb(
        "theory", verbs.theory, "footnote 4 as tables and figures: variance, softmax, gradients, leaks"
    )
    one.add_argument("folder", nargs="?", default="experiments/initialisation/results", help="where to write")
    one = verb("check", verbs.check, "which mistake has an attention of yours? see docs/detectors.md")
    one.add_argument("target", help="package.module:name of an attention, or of a function that makes one")
    one.add_argument(
        "--mask",
        default="keep",
        help="what its mask means: keep (True may attend; as it is), drop (True may not), additive (0 or -inf), none",
    )
    one.add_argument("--causal", action="store_true", help="it masks the future by itself")
    one.add_argument("--positions", action="store_true", help="it knows positions (rotary and the like)")
    one.add_argument("--heads", type=int, help="number of heads, where it cannot be read off")
    one.add_argument("--width", type=int, help="width of its input, where it cannot be read off")
    one.add_argument("--json", action="store_true", help="JSON in place of the report")
    one = verb("sync", verbs.sync, "upload offline W&B runs")
    one.add_argument("--output", default="outputs", help="folder that holds wandb/ (default: outputs)")
    one.add_argument("--dry-run", action="store_true", help="only list what would be uploaded")
    one = verb(
        "workspace",
        verbs.workspace,
        "save a W&B workspace and a report for a study (extra: wandb-workspaces)",
    )
    one.add_argument("overrides", nargs="*", help="experiment=<study> and the overrides it was run with")
    one.add_argument("--sweep", action="store_true", help="print the study's grid as a W&B sweep, and stop")
    one = verb(
        "bench",
        verbs.bench,
        "speed and memory beside others and the limit (extra: bench)",
        epilog=bench.EXAMPLES,
    )
    bench.add(one)
    one = verb("dashboard", verbs.dashboard, "look at the local W&B runs in the terminal (wandb leet)")
    one.add_argument("--output", default="outputs", help="folder that holds wandb/ (default: outputs)")
    return parser


def _groups() -> str:
    from attnlab.compose import groups

    lines = []
    for group in groups():
        names = ", ".join(sorted(path.stem for path in group.glob("*.yaml")))
        lines.append(f"  {group.name:<12}{names}\n")
    return RUN_EXAMPLES.format(groups="".join(lines))
