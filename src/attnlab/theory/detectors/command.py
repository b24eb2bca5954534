"""`attnlab check package.module:callable`: `detect` on a user's own code from the command line."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import nn

from attnlab.errors import UserError
from attnlab.terminal import show
from attnlab.theory.detectors import MaskStyle, Report, Subject, detect

MASKS = (MaskStyle.keep, MaskStyle.drop, MaskStyle.additive)  # what a mask may mean
SHOWN = 160  # characters of the message of a user's exception
NOT_THE_USERS = [  # folders of code that a line number would not help with: ours, Python's, installed packages
    Path(__file__).parents[2],
    *(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")),
]


def run(
    target: str, mask: str = MaskStyle.keep, causal: bool = False, positions: bool = False,
    heads: int | None = None, width: int | None = None, as_json: bool = False,
) -> int:  # fmt: skip
    """Check `package.module:name` and print the report; exit code 1 if it has a mistake, else 0.

    The name is an attention as `detect` takes it, or a function without arguments that makes one. Modules of the
    current folder are found. See `detect` for the other arguments. Raises UserError for a wrong target, and for
    whatever the user's code raises.
    """
    attention = find(target)
    checked = functools.partial(
        detect, attention, causal=causal, positions=positions, heads=heads, width=width
    )
    with _one_sentence(f"check: got '{target}', which cannot be checked"):
        report = checked(mask=mask)
    others = [] if report.ok else [style for style in MASKS if style != mask and _is_right(checked, style)]
    print(json.dumps(report.as_dict(), indent=1) if as_json else report)
    for other in others:
        show(f"attnlab: with --mask {other} nothing is wrong: is that what its mask means?", file=sys.stderr)
    return 0 if report.ok else 1


def _is_right(checked: Callable[..., Report], mask: MaskStyle) -> bool:
    """Whether nothing is wrong if its mask means that: a wrong guess looks like several mistakes at once."""
    try:
        return checked(mask=mask).ok
    except Exception:  # it may well not take such a mask
        return False


def find(target: str) -> Any:
    """The object behind `package.module:name`; a class or function that needs no arguments is called."""
    module_name, _, name = target.partition(":")
    if not module_name or not name or "/" in module_name or module_name.endswith(".py"):
        raise UserError(
            f"check: got '{target}', allowed: package.module:name from the folder that holds it, "
            "such as my_model.layers:attention"
        )
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        with _one_sentence(f"check: got '{target}', which cannot be imported"):
            thing: Any = importlib.import_module(module_name)
            for part in name.split("."):
                thing = getattr(thing, part)
        if isinstance(thing, (nn.Module, Subject)) or not callable(thing):
            return thing
        with _one_sentence(f"check: got '{target}', which makes no attention"):
            return thing() if _makes_one(thing, target) else thing
    finally:
        sys.path.remove(here)


@contextmanager
def _one_sentence(start: str) -> Iterator[None]:
    """Turn what the user's code raises, SystemExit of a script too, into a UserError: `start`, then what and where."""
    try:
        yield
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        says = " ".join(str(error).split())[:SHOWN]
        raise UserError(
            f"{start} ({type(error).__name__}{': ' if says else ''}{says}{_place(error)})"
        ) from error


def _place(error: BaseException) -> str:
    """The innermost line outside of installed packages and of this one; nothing where there is none."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_file() and not any(path.is_relative_to(folder) for folder in NOT_THE_USERS):
            return f", {path.name} line {frame.lineno}"
    return ""


def _makes_one(thing: Any, target: str) -> bool:
    """Whether it is a factory: callable without arguments."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except ValueError:  # compiled: `detect` says what to do
        return False
    needed = [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if isinstance(thing, type) and needed:
        raise UserError(
            f"check: got the class '{target}', which needs {', '.join(needed)}, allowed: a function without arguments "
            "that makes the module"
        )
    return not needed
