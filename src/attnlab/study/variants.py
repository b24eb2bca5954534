"""The configs of a study's cells, which differ from one composition in a few overrides.

Hydra takes about 0.2 seconds to compose a config, and a study has hundreds. So it composes once, and a cell's overrides
are laid over the result here, in Hydra's order: a group's file, what the experiment's file says about that group, the
overrides of the command line, those of the cell. Types and rules are checked for each cell as for any config. Where a
file or an override uses more of Hydra than that (packages, references, additions), Hydra composes the cell.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from attnlab.compose import conf_dir, load, resolved
from attnlab.config import Config
from attnlab.convert import convert, no_such_key
from attnlab.errors import UserError
from attnlab.rules import check

if TYPE_CHECKING:
    from omegaconf import DictConfig

Setting = tuple[str, Any]  # dotted key or group, and the value


class Variants:
    """`config(cell)` equals `load([*fixed, *cell])` and takes a thousandth of the time."""

    def __init__(self, fixed: Sequence[str], composed: DictConfig) -> None:
        """fixed: the overrides, `experiment=<study>` among them, that `composed` was composed with."""
        from omegaconf import OmegaConf

        self._fixed = list(fixed)
        self._base = resolved(composed)
        settings = _plain_settings(fixed)
        no_references = OmegaConf.to_container(composed, resolve=False) == self._base
        self._settings = settings if no_references else None
        self._experiment = file_values("experiment", dict(settings or []).get("experiment"))

    def config(self, cell: Sequence[str]) -> Config:
        """The checked config of a cell. Raises UserError, one sentence; BrokenRule where only its values are wrong."""
        raw = self._laid_over(cell)
        if raw is None:
            return load([*self._fixed, *cell])
        config = convert(raw)
        check(config)
        return config

    def _laid_over(self, cell: Sequence[str]) -> dict[str, Any] | None:
        """The cell's plain values, or None where Hydra is needed."""
        settings = _plain_settings(cell)
        if settings is None or self._settings is None or self._experiment is None:
            return None
        raw: dict[str, Any] = copy.deepcopy(self._base)
        chosen = {key: value for key, value in settings if _is_group(key)}
        for group, option in chosen.items():
            values = file_values(group, option)
            if values is None or group == "experiment":
                return None
            raw[group] = copy.deepcopy(_merged(values, self._experiment.get(group, {})))
        for key, value in self._settings:
            if key.partition(".")[0] in chosen and not _is_group(key):
                _set(raw, key, value)
        for key, value in settings:
            if not _is_group(key):
                _set(raw, key, value)
        return raw


@functools.cache
def file_values(group: str, option: Any) -> dict[str, Any] | None:
    """What the file of an option says, over the files of the same group in its defaults list; not to be written to.

    None where there is no such file, or where it uses more of Hydra.
    """
    from omegaconf import OmegaConf

    path = conf_dir() / group / f"{option}.yaml"
    if not isinstance(option, str) or not path.is_file():
        return None
    header = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("# @package")]
    if header != (["# @package _global_"] if group == "experiment" else []):
        return None
    own = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
    if not isinstance(own, dict):
        return None
    defaults = own.pop("defaults", [])
    below = [item for item in defaults if not _is_choice(item)]
    if below and below[-1] != "_self_":
        return None
    values: dict[str, Any] = {}
    for item in below[:-1]:
        inherited = file_values(group, item)
        if inherited is None:
            return None
        values = _merged(values, inherited)
    return _merged(values, {str(key): value for key, value in own.items()})


def _is_choice(item: Any) -> bool:
    """Whether a defaults list's item chooses a group's option, as `override /model: tiny` does, and adds no values."""
    return isinstance(item, dict) and all(str(key).startswith("override ") for key in item)


def _plain_settings(overrides: Iterable[str]) -> list[Setting] | None:
    """Keys and values of `key=value` overrides; None where one of them does more than give a value."""
    settings = [_plain_setting(item) for item in overrides]
    plain = [setting for setting in settings if setting is not None]
    return plain if len(plain) == len(settings) else None


@functools.cache
def _plain_setting(item: str) -> Setting | None:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        parsed = OverridesParser.create().parse_override(item)
    except (HydraException, ValueError):  # Hydra composes it and says what is wrong
        return None
    if parsed.is_delete() or parsed.is_add() or parsed.is_force_add() or parsed.is_sweep_override():
        return None
    if parsed.package is not None or "$" in item:
        return None
    value = parsed.value()
    return None if isinstance(value, dict) else (parsed.key_or_group, value)


@functools.cache
def _is_group(key: str) -> bool:
    return "." not in key and (conf_dir() / key).is_dir()


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(below.get(key), dict)
        merged[key] = _merged(below[key], value) if both else value
    return merged


def _set(raw: dict[str, Any], key: str, value: Any) -> None:
    *parents, last = key.split(".")
    node: Any = raw
    for part in parents:
        node = node.get(part) if isinstance(node, dict) else None
    if not isinstance(node, dict) or last not in node:
        raise UserError(no_such_key(key))
    node[last] = copy.deepcopy(value)
