"""Plain values (of YAML, of overrides) to the dataclasses of config.py: each exactly the type that was meant.

A setting is refused rather than bent: the text '8' is no number, 1.5 no whole number, true no 1. Two things are as
good as meant: a whole number for a number, and a number for a text (output=2026).
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from enum import Enum
from typing import Any, cast

from attnlab.config import Config
from attnlab.errors import UserError
from attnlab.terminal import short
from attnlab.texts import LARGEST

MISSING = "???"  # Hydra's and OmegaConf's mark of a value that is still to be given


def convert(raw: Any) -> Config:
    """Nested dicts of plain values as a Config; nothing across fields is checked. Raises UserError, one sentence."""
    return cast("Config", _group(Config, raw, ""))


def no_such_key(key: str) -> str:
    """The sentence for a dotted key that does not exist: names the keys that stand where it was looked for."""
    parent, _, last = key.rpartition(".")
    holder = _type_at(parent)
    while parent and not dataclasses.is_dataclass(holder):
        parent, _, last = parent.rpartition(".")
        holder = _type_at(parent)
    names = ", ".join(_fields(cast("type", holder)))
    return f"{short(key)}: there is no '{short(last)}'{f' in {short(parent)}' if parent else ''}, allowed: {names}"


def refused(key: str, value: Any) -> str:
    """The sentence for a value that the existing key does not take."""
    return _refused(key, value, _words(_type_at(key)))


def exists(key: str) -> bool:
    """Whether the configuration has this dotted key."""
    return _type_at(key) is not None


def _group(kind: type, raw: Any, path: str) -> Any:
    if not isinstance(raw, dict):
        raise UserError(_refused(path, raw, "a group of settings"))
    kinds = _fields(kind)
    for name in raw:
        if name not in kinds:
            raise UserError(no_such_key(_join(path, str(name))))
    given = _defaults(kind) | raw
    return kind(**{name: _value(kinds[name], given.get(name, MISSING), _join(path, name)) for name in kinds})


def _value(kind: Any, raw: Any, path: str) -> Any:
    if dataclasses.is_dataclass(kind):
        return _group(cast("type", kind), None if raw == MISSING else raw, path)
    if kind is Any:
        return raw
    if isinstance(kind, types.UnionType):  # `... | None` is the only union here
        if raw is None:
            return None
        kind = next(part for part in typing.get_args(kind) if part is not type(None))
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is list and isinstance(raw, list):
        return [_value(arguments[0], item, path) for item in raw]
    if origin is dict and isinstance(raw, dict):
        return dict(raw)
    if isinstance(kind, type):
        match raw:
            case str() if issubclass(kind, Enum) and raw in [member.value for member in kind]:
                return kind(raw)
            case bool() if kind is bool:
                return raw
            case bool():
                pass
            case int() if abs(raw) >= LARGEST:
                pass
            case str() if kind is str and raw != MISSING:
                return raw
            case int() | float() if kind is str:
                return str(raw)
            case int() if kind is int:
                return raw
            case int() | float() if kind is float:
                return float(raw)
    raise UserError(refused(path, raw))


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


@functools.cache
def _fields(kind: type) -> dict[str, Any]:
    """The annotated types of a dataclass by name."""
    return typing.get_type_hints(kind)


def _defaults(kind: type) -> dict[str, Any]:
    """What a dataclass itself says of settings that may be left out: newer ones than a run's stored config has."""
    given: dict[str, Any] = {}
    for one in dataclasses.fields(kind):
        if one.default is not dataclasses.MISSING:
            given[one.name] = one.default
        elif one.default_factory is dict:
            given[one.name] = {}
        elif one.default_factory is list:
            given[one.name] = []
    return given


def _type_at(key: str) -> Any:
    """The annotated type of a dotted key, or None where there is no such key."""
    kind: Any = Config
    for part in filter(None, key.split(".")):
        if not dataclasses.is_dataclass(kind):
            return None
        kind = _fields(cast("type", kind)).get(part)
    return kind


def _words(kind: Any) -> str:
    """What a type takes, for a sentence."""
    if isinstance(kind, types.UnionType):
        return " or ".join("null" if part is type(None) else _words(part) for part in typing.get_args(kind))
    if typing.get_origin(kind) is list:
        return f"a list, each {_words(typing.get_args(kind)[0])}"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ", ".join(member.name for member in kind)
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    return names.get(kind, "a group of settings")


def _refused(key: str, value: Any, expected: str) -> str:
    match value:
        case "???":
            shown = "nothing"
        case str():
            shown = f"'{short(value)}'"
        case None:
            shown = "null"
        case bool():
            shown = str(value).lower()
        case int() if abs(value) >= LARGEST:
            shown = "a whole number of more than 18 digits"
        case _:
            shown = short(str(value))
    return f"{key}: got {shown}, allowed: {expected}"
