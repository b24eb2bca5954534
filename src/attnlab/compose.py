"""From the command line to a checked Config. Hydra composes, OmegaConf converts, and past `load()` neither is left.

Each refusal is one sentence: the setting, what it got, what is allowed.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from enum import Enum
from pathlib import Path
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from attnlab.config import Config
from attnlab.errors import UserError
from attnlab.identity import plain
from attnlab.rules import check


def conf_dir() -> Path:
    """Folder of the YAML files: inside the installed package, or at the top of a checkout."""
    here = Path(__file__).resolve().parent
    installed = here / "conf"
    return installed if installed.is_dir() else here.parents[1] / "conf"


def load(overrides: list[str]) -> Config:
    """Compose conf/ with command-line overrides into a checked Config; raises UserError."""
    return typed(compose(overrides))


def compose(overrides: list[str]) -> DictConfig:
    """Hydra's part: groups, defaults lists and overrides, values not yet checked. Raises UserError."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    GlobalHydra.instance().clear()
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        try:
            return hydra_compose("config", overrides=overrides)
        except Exception as error:  # besides its own exceptions Hydra lets KeyError and ValueError through
            raise UserError(_not_composed(error)) from None


def typed(composed: DictConfig) -> Config:
    """The composed values as dataclasses: types first, then the rules across fields. Raises UserError."""
    raw = OmegaConf.to_container(composed, resolve=False)
    _refuse_missing_groups(Config, raw, "")
    try:
        merged = OmegaConf.merge(OmegaConf.structured(Config), composed)
        OmegaConf.resolve(merged)
        config = cast("Config", OmegaConf.to_object(merged))
    except OmegaConfBaseException as error:
        raise UserError(_not_typed(error, composed)) from None
    _refuse_text(OmegaConf.to_container(composed, resolve=True), plain(config), "")
    check(config)
    return config


def _not_composed(error: Exception) -> str:
    """Hydra's several lines, by what they are about."""
    text = str(error)
    if found := re.search(r"Could not find '(.+)/([^/']+)'", text):
        group, option = found.groups()
        options = sorted(path.stem for path in (conf_dir() / group).glob("*.yaml"))
        return f"{group}: got '{option}', allowed: {', '.join(options)}"
    if found := re.search(r"Ambiguous value for argument '([^=]+)=(.*)'", text):
        key, value = found.groups()
        return f"{key}: got several values '{value}', allowed: one, or a study with experiment=<study>, which takes several"
    if found := re.search(r"Could not override '(.+?)'", text):
        return _no_such_key(found[1])
    return text.split("\n")[0].rstrip(".")


def _not_typed(error: OmegaConfBaseException, composed: DictConfig) -> str:
    key = re.sub(r"\[\d+\]$", "", error.full_key or "")
    expected = _allowed(key)
    if expected is None:
        return _no_such_key(key)
    value: Any = OmegaConf.to_container(composed, resolve=False)
    for part in key.split("."):
        value = value[part]
    return _refused(key, value, expected)


def _refuse_missing_groups(kind: Any, raw: Any, path: str) -> None:
    """Where a group of settings is missing or was replaced by a single value, OmegaConf's error would name no key."""
    if not isinstance(raw, dict):
        raise UserError(_refused(path, raw, "a group of settings"))
    for name, inner in typing.get_type_hints(kind).items():
        if dataclasses.is_dataclass(inner):
            _refuse_missing_groups(inner, raw.get(name), f"{path}.{name}" if path else name)


def _refused(key: str, value: Any, expected: str) -> str:
    shown = f"'{value}'" if isinstance(value, str) else "null" if value is None else _yaml(value)
    return f"{key}: got {shown}, allowed: {expected}"


def _yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _no_such_key(key: str) -> str:
    """Name the keys that stand where `key` was looked for."""
    parent, _, last = key.rpartition(".")
    holder = _type_at(parent) if parent else Config
    while parent and not dataclasses.is_dataclass(holder):
        parent, _, last = parent.rpartition(".")
        holder = _type_at(parent) if parent else Config
    names = ", ".join(one.name for one in dataclasses.fields(holder))
    return f"{key}: there is no '{last}'{f' in {parent}' if parent else ''}, allowed: {names}"


def _type_at(key: str) -> Any:
    """The annotated type of a dotted key, or None where there is no such key."""
    kind: Any = Config
    for part in key.split("."):
        if not dataclasses.is_dataclass(kind):
            return None
        kind = typing.get_type_hints(kind).get(part)
    return kind


def _allowed(key: str) -> str | None:
    """What a key takes, in words; None where there is no such key."""
    kind = _type_at(key)
    return None if kind is None else _words(kind)


def _words(kind: Any) -> str:
    if isinstance(kind, types.UnionType):
        return " or ".join("null" if part is type(None) else _words(part) for part in typing.get_args(kind))
    if typing.get_origin(kind) is list:
        return f"a list, each {_words(typing.get_args(kind)[0])}"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ", ".join(member.name for member in kind)
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    return names.get(kind, "a group of settings")


def _refuse_text(raw: Any, typed_value: Any, path: str) -> None:
    """OmegaConf reads the texts 'false' and '8' as a boolean and a number; a sweep must not."""
    match raw, typed_value:
        case dict(), dict():
            for key, value in raw.items():
                if path != "study":  # a grid may hold anything; its cells are checked one by one
                    _refuse_text(value, typed_value.get(key), f"{path}.{key}" if path else str(key))
        case list(), list():
            for item, typed_item in zip(raw, typed_value, strict=True):
                _refuse_text(item, typed_item, path)
        case str(), bool() | int() | float():
            raise UserError(_refused(path, raw, _allowed(path) or "a number"))
