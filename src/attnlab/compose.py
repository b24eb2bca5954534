"""From the command line to a checked Config. Hydra composes, convert.py types, rules.py checks; past `load()` no
object of Hydra's is left.

Each refusal is one sentence: the setting, what it got, what is allowed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.config import Config
from attnlab.convert import convert, exists, no_such_key, refused
from attnlab.errors import UserError
from attnlab.rules import check
from attnlab.terminal import short
from attnlab.texts import refused_values

if TYPE_CHECKING:
    from omegaconf import DictConfig


LONGEST_KEY = 200  # characters
NO_PACKAGE = (
    "experiment: got a study whose file does not begin with '# @package _global_', allowed: one that does"
)


def conf_dir() -> Path:
    """Folder of the YAML files: inside the installed package, or at the top of a checkout."""
    here = Path(__file__).resolve().parent
    installed = here / "conf"
    return installed if installed.is_dir() else here.parents[1] / "conf"


def groups() -> list[Path]:
    """Folders of conf/ whose files are options of a setting, sorted; wandb_sweep holds files for W&B alone."""
    return sorted(path for path in conf_dir().iterdir() if path.is_dir() and path.name != "wandb_sweep")


def load(overrides: list[str]) -> Config:
    """Compose conf/ with command-line overrides into a checked Config; raises UserError."""
    return typed(compose(overrides))


def compose(overrides: list[str]) -> DictConfig:
    """Hydra's part: groups, defaults lists and overrides, values not yet checked. Raises UserError."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    for item in overrides:
        _refuse_unreadable(item)
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        try:
            composed = hydra_compose("config", overrides=overrides)
        except Exception as error:  # besides its own exceptions Hydra lets KeyError and ValueError through
            raise UserError(_not_composed(error)) from None
    if "experiment" in composed:
        raise UserError(NO_PACKAGE)
    return composed


def _refuse_unreadable(item: str) -> None:
    """What Hydra would take for a path, Python for no number, and a terminal for a command."""
    key, equals, _ = item.partition("=")
    if not equals and not item.startswith("~"):
        raise UserError(
            f"overrides: got '{short(item)}', allowed: key=value, as in experiment=demo or seed=2"
        )
    for problem in refused_values(item, "overrides"):
        raise UserError(problem)
    if len(key) > LONGEST_KEY:
        raise UserError(
            f"{short(key)}: got a key of {len(key)} characters, allowed: those of the configuration"
        )
    if re.search(r"\d{400}", item):
        raise UserError(f"{key}: got a number of hundreds of digits, allowed: a smaller one")


def typed(composed: DictConfig) -> Config:
    """The composed values as dataclasses: types first, then the rules across fields. Raises UserError."""
    config = convert(resolved(composed))
    check(config)
    return config


def resolved(composed: DictConfig) -> Any:
    """As plain dicts and lists, each ${reference} replaced by what it stands for. Raises UserError."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        return OmegaConf.to_container(composed, resolve=True)
    except OmegaConfBaseException as error:
        key = re.sub(r"\[\d+\]", "", error.full_key or "")
        raise UserError(_not_resolved(key, OmegaConf.to_container(composed, resolve=False))) from None


def _not_resolved(key: str, value: Any) -> str:
    for part in key.split("."):
        value = value[part]
    return refused(key, value) if exists(key) else no_such_key(key)


def _not_composed(error: Exception) -> str:
    """Hydra's several lines, by what they are about."""
    text = str(error)
    if (mark := getattr(error, "problem_mark", None)) is not None:  # PyYAML's
        problem = getattr(error, "problem", "")
        return f"{mark.name} line {mark.line + 1}: got a file that cannot be read ({problem}), allowed: YAML"
    if re.search(r"Could not override '\w+@experiment\.", text):
        return NO_PACKAGE
    if found := re.search(r"Could not find '(.+)/([^/']+)'", text):
        group, option = found.groups()
        options = sorted(path.stem for path in (conf_dir() / group).glob("*.yaml"))
        return f"{short(group)}: got '{short(option)}', allowed: {', '.join(options)}"
    if found := re.search(r"Ambiguous value for argument '([^=]+)=(.*)'", text):
        key, value = found.groups()
        return f"{short(key)}: got several values '{short(value)}', allowed: one, or a study with experiment=<study>, which takes several"
    if found := re.search(r"Could not override '(.+?)'", text):
        return no_such_key(found[1])
    return short(" ".join(text.split("\n")[0].split())).rstrip(".")
