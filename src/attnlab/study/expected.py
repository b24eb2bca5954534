"""Reading expected.yaml, the claims of a study. What the fields mean: claims.py."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from attnlab.errors import UserError
from attnlab.study.cells import labels
from attnlab.study.claims import Claim, Direction, Effect, Kind
from attnlab.study.grid import Study
from attnlab.study.metric import Metric

_Enum = TypeVar("_Enum", bound=StrEnum)
_TEXTS = ("id", "statement", "metric", "kind", "direction", "source")
_FIELDS = {*_TEXTS, "cell", "control", "bounds"}
_CHECK = "check"  # of any kind: true for what holds by construction
_ROW = (
    Kind.ordering,
    Kind.slope,
    Kind.exponent,
    Kind.rank,
    Kind.optimum,
    Kind.sensitivity,
)  # of a list of cells
_ALONE = (Kind.value, Kind.ordering, Kind.sd)  # without a control
_EITHER = (Kind.slope, Kind.exponent, Kind.rank)  # with or without
_CHOOSING = (Kind.difference, Kind.ratio, Kind.share)  # of the best of a list, with `choose`
_AGAINST = (Kind.slope, Kind.exponent, Kind.rank, Kind.optimum)


def path_of(study: Study) -> Path:
    """Where the claims of a study are registered."""
    return Path("experiments") / study.name / "expected.yaml"


def registered(study: Study) -> list[Claim]:
    """The claims of a study, none where it has no such file. Raises UserError as `load_claims` does."""
    return load_claims(path_of(study)) if path_of(study).exists() else []


def without_cell(study: Study, claims: Sequence[Claim]) -> str | None:
    """In one line which claims name a cell that the grid lacks, or None: said before anything trains."""
    known = labels(study)
    lacking = [(claim.id, label) for claim in claims for label in claim.labels if label not in known]
    if not lacking:
        return None
    count, (first, label) = len({claim for claim, _ in lacking}), lacking[0]
    return f"claims: {count} of {len(claims)} name a cell that this grid lacks, {first} `{label}`"


def load_claims(path: Path) -> list[Claim]:
    """The claims of an expected.yaml, in order. Raises UserError: the claim, the field, what it got, what is allowed."""
    import yaml
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:  # OmegaConf's loader reads 1e-4 as a number, and refuses a key that stands twice
        raw = OmegaConf.to_container(OmegaConf.load(path))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, OmegaConfBaseException) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{path}: got a file that cannot be read ({reason}), allowed: YAML") from None
    if not isinstance(raw, dict) or set(raw) != {"claims"} or not isinstance(raw["claims"], list):
        raise UserError(f"{path}: got {_shown(raw)}, allowed: one key `claims` with a list")
    claims = [_claim(item, f"{path}, claim {number}") for number, item in enumerate(raw["claims"], start=1)]
    ids = [claim.id for claim in claims]
    for claim in claims:
        if ids.count(claim.id) > 1:
            raise UserError(f"{path}: got the id '{claim.id}' {ids.count(claim.id)} times, allowed: once")
    return claims


def _claim(item: Any, where: str) -> Claim:
    if not isinstance(item, dict) or not set(item) >= _FIELDS:
        got = ", ".join(map(str, item)) if isinstance(item, dict) else _shown(item)
        raise UserError(f"{where}: got {got}, allowed: {', '.join(sorted(_FIELDS))}, and what the kind adds")
    for name in _TEXTS:
        if not isinstance(item[name], str) or not item[name].strip():
            raise UserError(f"{where}, {name}: got {_shown(item[name])}, allowed: text")
    where = f"{where} ({item['id']})"
    kind = _member(Kind, item["kind"], f"{where}, kind")
    direction = _member(Direction, item["direction"], f"{where}, direction")
    allowed = (
        _FIELDS | ({"against"} if kind in _AGAINST else set()) | ({"of"} if kind is Kind.share else set())
    )
    more = [name for name, kinds in (("choose", _CHOOSING), ("effect", (Kind.share,))) if kind in kinds]
    needed, allowed = allowed, allowed | {*more, _CHECK}
    if not needed <= set(item) <= allowed:
        raise UserError(
            f"{where}: got {', '.join(map(str, item))}, allowed for kind {kind}: exactly {', '.join(sorted(needed))}, "
            f"and {', '.join([*more, _CHECK])}"
        )
    choose = item.get("choose")
    cells = _labels(item["cell"], f"{where}, cell", kind, kind in _ROW, choose is not None)
    controls: tuple[str, ...] = ()
    if kind in _ALONE or (kind in _EITHER and item["control"] is None):
        if item["control"] is not None:
            raise UserError(f"{where}, control: got {_shown(item['control'])}, allowed for kind {kind}: null")
    else:
        controls = _labels(item["control"], f"{where}, control", kind, kind in _ROW, choose is not None)
    if kind in _ROW and controls and len(controls) != len(cells):
        raise UserError(
            f"{where}, control: got {len(controls)} labels, allowed: as many as cells, {len(cells)}"
        )
    of = _labels(item["of"], f"{where}, of", kind, True, False) if kind is Kind.share else ()
    if kind is Kind.share and len(of) != 2:
        raise UserError(f"{where}, of: got {len(of)} labels, allowed: two, a cell and its control")
    against = _against(item["against"], kind, len(cells), where) if kind in _AGAINST else None
    if "choose" in item and not isinstance(choose, str):
        raise UserError(f"{where}, choose: got {_shown(choose)}, allowed: a metric")
    effect = _member(Effect, item["effect"], f"{where}, effect") if "effect" in item else None
    if not isinstance(item.get(_CHECK, False), bool):
        raise UserError(f"{where}, {_CHECK}: got {_shown(item[_CHECK])}, allowed: true, false")
    for name, text in (("metric", item["metric"]), ("choose", choose), ("against", against)):
        if isinstance(text, str):
            _refuse_metric(text, f"{where}, {name}")
    return Claim(
        item["id"], item["statement"], item["metric"], kind, cells, controls, direction,
        _bounds(item["bounds"], direction, where), item["source"], against, of, choose,
        effect, item.get(_CHECK, False),
    )  # fmt: skip


def _labels(value: Any, where: str, kind: Kind, row: bool, choosing: bool) -> tuple[str, ...]:
    """One label, or a list of two or more where the kind takes a row of cells or the best of some is meant."""
    found = tuple(value) if isinstance(value, list) else (value,)
    many = isinstance(value, list) and len(found) > 1
    if not all(isinstance(label, str) for label in found) or (many != row and not choosing):
        allowed = "a list of two labels or more" if row else "the label of one cell"
        allowed += ", or a list" if choosing else ""
        raise UserError(f"{where}: got {_shown(value)}, allowed for kind {kind}: {allowed}")
    return found


def _against(value: Any, kind: Kind, cells: int, where: str) -> tuple[float, ...] | str:
    if isinstance(value, str) and kind is Kind.rank:
        return value
    if not _numbers(value) or len(value) != cells or (kind is not Kind.rank and min(value) <= 0):
        allowed = f"{cells} numbers" + (" or a metric" if kind is Kind.rank else " above 0")
        raise UserError(f"{where}, against: got {_shown(value)}, allowed for kind {kind}: {allowed}")
    return tuple(map(float, value))


def _bounds(value: Any, direction: Direction, where: str) -> tuple[float, ...]:
    size = 2 if direction is Direction.within else 1
    if not _numbers(value) or len(value) != size or sorted(value) != value:
        allowed = "[low, high]" if direction is Direction.within else "[number]"
        raise UserError(f"{where}, bounds: got {_shown(value)}, allowed for direction {direction}: {allowed}")
    return tuple(map(float, value))


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one) for one in value
    )


def _refuse_metric(text: str, where: str) -> None:
    try:
        Metric.parse(text)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None


def _member(kind: type[_Enum], value: str, where: str) -> _Enum:
    try:
        return kind(value)
    except ValueError:
        raise UserError(f"{where}: got '{value}', allowed: {', '.join(kind)}") from None


def _shown(value: Any) -> str:
    return "nothing" if value is None else f"'{value}'"
