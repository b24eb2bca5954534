"""Those who do the work, as rows: a name, the child that measures it, and how it ships."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from attnlab.bench.work import Environment
from attnlab.errors import UserError


class Builtin(StrEnum):
    """Systems that need no command."""

    ours = "ours"
    plain = "plain"
    plain_buckets = "plain_buckets"
    marian = "marian"
    marian_eager = "marian_eager"


@dataclass(frozen=True)
class System:
    """One row for each precision, number of threads and environment."""

    name: str
    module: str
    note: str
    settings: tuple[str, ...] = ()


def builtin(name: Builtin, overrides: Sequence[str]) -> System:
    """The system of that name; `overrides` are further settings of ours."""
    package = "attnlab.bench.systems"
    match name:
        case Builtin.ours:
            return System(
                name.value, f"{package}.ours", "attnlab's own training loop, probes off", tuple(overrides)
            )
        case Builtin.plain:
            return System(name.value, f"{package}.plain", "torch.nn.Transformer, batches in random order")
        case Builtin.plain_buckets:
            return System(
                name.value,
                f"{package}.plain",
                "torch.nn.Transformer, batches of like target lengths",
                ("buckets",),
            )
        case Builtin.marian:
            return System(
                name.value, f"{package}.marian",
                "Hugging Face MarianMTModel (post-LN), Seq2SeqTrainer, group_by_length, attention as it ships (sdpa)",
                ("sdpa",),
            )  # fmt: skip
        case Builtin.marian_eager:
            return System(
                name.value, f"{package}.marian", "the same with attn_implementation='eager', which does not ship as default",
                ("eager",),
            )  # fmt: skip


def chosen(names: str, overrides: Sequence[str]) -> list[System]:
    """Built-in systems by their names, comma-separated, or `all`. Raises UserError."""
    listed = (
        [member.value for member in Builtin]
        if names == "all"
        else [name for name in names.split(",") if name]
    )
    for name in listed:
        if name not in Builtin.__members__:
            raise UserError(f"--systems: got '{name}', allowed: all or {', '.join(Builtin.__members__)}")
    return [builtin(Builtin(name), overrides) for name in listed]


def variant(text: str, overrides: Sequence[str]) -> System:
    """`name=override override`: our own system with other settings. Raises UserError."""
    name, settings = _named(text, "--variant", "name='key=value key=value'")
    return System(
        name, "attnlab.bench.systems.ours", f"ours with {settings}", (*overrides, *settings.split())
    )


def peer(text: str) -> System:
    """`name=command`: see `external.py` for what the command has to do. Raises UserError."""
    name, command = _named(text, "--peer", "name='command'")
    return System(name, "attnlab.bench.systems.external", f"external: {command}", (command,))


def environment(name: str) -> Environment:
    """Raises UserError."""
    if name not in Environment.__members__:
        raise UserError(f"--environments: got '{name}', allowed: {', '.join(Environment.__members__)}")
    return Environment(name)


def _named(text: str, option: str, allowed: str) -> tuple[str, str]:
    name, _, rest = text.partition("=")
    if not name.strip() or not rest.strip():
        raise UserError(f"{option}: got '{text}', allowed: {allowed}")
    return name.strip(), rest.strip()
