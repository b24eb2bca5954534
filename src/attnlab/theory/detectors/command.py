"""`attnlab check package.module:callable`: `detect` on a user's own code from the command line."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any

from torch import nn

from attnlab.errors import UserError
from attnlab.theory.detectors import MaskStyle, Subject, detect


def run(
    target: str, mask: str = MaskStyle.keep, causal: bool = False, positions: bool = False,
    heads: int | None = None, width: int | None = None, as_json: bool = False,
) -> int:  # fmt: skip
    """Check `package.module:name` and print the report; exit code 1 if it has a mistake, else 0.

    The name is an attention as `detect` takes it, or a function without arguments that makes one. Modules of the
    current folder are found. See `detect` for the other arguments.
    """
    report = detect(
        find(target), mask=mask, causal=causal, positions=positions, heads=heads, width=width
    )  # fmt: skip
    print(json.dumps(report.as_dict(), indent=1) if as_json else report)
    return 0 if report.ok else 1


def find(target: str) -> Any:
    """The object behind `package.module:name`; a class or function that needs no arguments is called."""
    module_name, _, name = target.partition(":")
    if not module_name or not name:
        raise UserError(
            f"check: got '{target}', allowed: package.module:name, such as my_model.layers:attention"
        )
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        thing: Any = importlib.import_module(module_name)
        for part in name.split("."):
            thing = getattr(thing, part)
    except (ImportError, AttributeError) as error:
        raise UserError(f"check: got '{target}', which cannot be imported ({error})") from None
    finally:
        sys.path.remove(here)
    if isinstance(thing, (nn.Module, Subject)) or not callable(thing):
        return thing
    return thing() if _makes_one(thing, target) else thing


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
