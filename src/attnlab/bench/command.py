"""`attnlab bench`: read the options, run the sections, print their tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from attnlab.bench import machine, report
from attnlab.bench.options import Options, Section
from attnlab.bench.report import Table
from attnlab.bench.sections import decoding, gpu, memory, probes, sweep, training
from attnlab.bench.spawn import run_child
from attnlab.bench.systems import chosen, environment, peer, variant
from attnlab.bench.work import GRAMMAR, Job, Work
from attnlab.errors import UserError

PRECISIONS = ("fp32", "bf16")


def run(arguments: argparse.Namespace) -> int:
    """Exit code 0; raises UserError."""
    made = machine.made(sys.argv[1:])
    sections, options = sections_of(arguments.sections), options_of(arguments)
    made |= {"text": prepare(options, options.device if Section.gpu in sections else "cpu")}
    tables = []
    for section in sections:
        tables.append(run_section(section, options))
        if arguments.write is not None:  # at once: what is measured stays, whatever happens to the next
            report.write_into(arguments.write, made, tables[-1:])
    print(report.as_json(made, tables) if arguments.json else report.as_text(made, tables))
    return 0


def sections_of(names: Sequence[str]) -> list[Section]:
    """Raises UserError."""
    for name in names:
        if name != "all" and name not in Section.__members__:
            raise UserError(f"bench: got section '{name}', allowed: {', '.join(Section.__members__)}, all")
    wanted = {Section(name) for name in names if name != "all"}
    if "all" in names:
        wanted |= set(Section) - {Section.gpu}
    return [section for section in Section if section in wanted]


def options_of(arguments: argparse.Namespace) -> Options:
    """The options, checked; raises UserError."""
    precisions = tuple(arguments.precisions.split(","))
    for precision in precisions:
        if precision not in PRECISIONS:
            raise UserError(f"--precisions: got '{precision}', allowed: {', '.join(PRECISIONS)}")
    overrides = tuple(arguments.overrides)
    systems = chosen(arguments.systems, overrides)
    systems += [variant(text, overrides) for text in arguments.variant]
    systems += [peer(text) for text in arguments.peer]
    names = [system.name for system in systems]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(f"bench: got two systems named '{twice[0]}', allowed: one row of a name")
    if arguments.seconds <= 0:
        raise UserError(f"--seconds: got {arguments.seconds:g}, allowed: more than 0")
    return Options(
        work=Work(str(_folder(arguments.data)), str(Path(arguments.output).resolve())),
        rounds=_at_least_one("--rounds", arguments.rounds),
        steps=_at_least_one("--steps", arguments.steps),
        warmup=_at_least_one("--warmup", arguments.warmup),
        threads=_numbers("--threads", arguments.threads),
        precisions=precisions,
        environments=tuple(environment(name) for name in arguments.environments.split(",")),
        systems=tuple(systems),
        overrides=overrides,
        runs=_numbers("--runs", arguments.runs),
        seconds=arguments.seconds,
        device=arguments.device,
    )


def prepare(options: Options, device: str) -> str:
    """Make the tokenizer once, before anything is timed, and say what the text is.

    Raises UserError where text, settings or device are not there.
    """
    job = Job(options.work, device=device, settings=options.overrides)
    ended = run_child("attnlab.bench.children.prepare", job)
    if ended.problem:
        raise UserError(ended.problem)
    pairs, size = (int(ended.values[name]) for name in ("train_pairs", "vocab_size"))
    return f"{Path(options.work.data).name}, {pairs:,} training pairs, vocabulary {size:,}"


def run_section(section: Section, options: Options) -> Table:
    """One table."""
    match section:
        case Section.training:
            return training.run(options)
        case Section.memory:
            return memory.run(options)
        case Section.decoding:
            return decoding.run(options)
        case Section.probes:
            return probes.run(options)
        case Section.sweep:
            return sweep.run(options)
        case Section.gpu:
            return gpu.run(options)


def _folder(data: str) -> str | Path:
    return GRAMMAR if data == GRAMMAR else Path(data).resolve()


def _at_least_one(option: str, number: int) -> int:
    if number < 1:
        raise UserError(f"{option}: got {number}, allowed: 1 or more")
    return number


def _numbers(option: str, text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise UserError(f"{option}: got '{text}', allowed: whole numbers from 1 on, comma-separated")
    return tuple(int(part) for part in parts)
