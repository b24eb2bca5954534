"""How W&B is imported and kept inside the output folder; shared by the mirror and by `attnlab sync`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attnlab.errors import UserError


@contextmanager
def wandb_environment(output: Path) -> Iterator[None]:
    """Inside, W&B keeps its caches and staging below `output`, is quiet and reports nothing about itself.

    Its own defaults are ~/.local/share and ~/.cache. WANDB_CONFIG_DIR stays as it is: W&B only reads there, and it
    may hold the address of the user's own server.
    """
    values = {
        "WANDB_DATA_DIR": str(output / ".wandb-data"),
        "WANDB_CACHE_DIR": str(output / ".wandb-data" / "cache"),
        "WANDB_SILENT": "true",
        "WANDB_ERROR_REPORTING": os.environ.get("WANDB_ERROR_REPORTING", "false"),
    }
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def import_wandb() -> Any:
    """The module wandb, or a UserError that says how to get it."""
    try:
        import PIL  # noqa: F401  wandb.Image needs it and does not say so in its dependencies
        import wandb
    except ImportError as error:
        raise UserError(
            f"track=wandb needs the package {error.name}, which is not installed; "
            "run `pip install 'attnlab[wandb]'` or choose track=none"
        ) from error
    return wandb
