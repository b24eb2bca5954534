"""How W&B is imported and kept inside the output folder; shared by all that uses it."""

from __future__ import annotations

import os
import ssl
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attnlab.errors import UserError
from attnlab.texts import without_secrets

_ANSWER_SECONDS = 20.0


@contextmanager
def wandb_environment(output: Path) -> Iterator[None]:
    """Inside, W&B keeps its caches, staging and temporary files below `output`, is quiet and reports nothing about itself.

    Its own defaults are ~/.local/share, ~/.cache and the system's temporary folder, where copies of pictures and
    tables would stay after a kill. WANDB_CONFIG_DIR stays as it is: W&B only reads there, and it may hold the address
    of the user's own server. TMPDIR stays too: it is where W&B's service opens its sockets, whose paths may have 107
    characters at most. A sweep's parameters are left to the command line, where they are typed: W&B would write them
    over the run's configuration as flat keys, the arm's name over the whole group `attention`.
    """
    data = output / ".wandb-data"
    values = {
        "WANDB_DIR": str(output),  # else the commands of wandb log into the folder they are called in
        "WANDB_DATA_DIR": str(data),
        "WANDB_CACHE_DIR": str(data / "cache"),
        "WANDB_SILENT": "true",
        "WANDB_ERROR_REPORTING": os.environ.get("WANDB_ERROR_REPORTING", "false"),
        "WANDB_SWEEP_PARAM_PATH": None,
    }
    before = {name: os.environ.get(name) for name in values}
    temporary, tempfile.tempdir = tempfile.tempdir, str(data / "tmp")
    arguments, sys.argv = sys.argv, [without_secrets(item) for item in sys.argv]  # W&B keeps the command line
    _set(values)
    try:
        (data / "tmp").mkdir(parents=True, exist_ok=True)
        yield
    finally:
        _set(before)
        tempfile.tempdir = temporary
        sys.argv = arguments


def _set(values: dict[str, str | None]) -> None:
    for name, value in values.items():
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


def require_answer(verb: str, url: str) -> None:
    """Raise UserError where nobody answers: W&B itself would try for ever, and a server's refusal it can explain."""
    try:
        urllib.request.urlopen(url, timeout=_ANSWER_SECONDS).close()
    except urllib.error.HTTPError:
        return
    except OSError as error:  # no such host, nobody listens, no answer in time
        reason = getattr(error, "reason", error)
        if not isinstance(reason, ssl.SSLError):  # W&B may know the certificates that Python does not
            raise UserError(
                f"{verb}: W&B's server {url} does not answer ({reason}); check the network and WANDB_BASE_URL"
            ) from None
