"""A study's grid as a W&B sweep, for those who like agents: conf/wandb_sweep/<study>.yaml is made here.

`attnlab run experiment=<study>` remains the first way: it checks all cells before it starts, needs no server, and runs
what a sweep cannot say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from attnlab.errors import UserError

if TYPE_CHECKING:
    from attnlab.study.grid import Study


def sweep(grid: Study, listed: int) -> str:
    """The YAML file. Raises UserError for a study without a grid.

    grid: the study without the cells that it lists beside its grid, since W&B knows products alone. listed: how many
    those are, for a line that says what runs them.
    """
    axes: dict[str, dict[str, None]] = {}  # key -> its values, each once, in the study's order
    for cell in grid.cells:
        for item in cell.overrides:
            key, _, value = item.partition("=")
            axes.setdefault(key, {})[value] = None
    if not axes:
        raise UserError(
            f"study.grid: got nothing in {grid.name}, allowed: axes with their values, of which a sweep is made"
        )
    body = {
        "program": "attnlab",  # W&B wants one; what is run is the command
        "name": grid.name,
        "method": "grid",
        "parameters": {key: {"values": [_value(text) for text in texts]} for key, texts in axes.items()},
        "command": [
            "attnlab", "run", *grid.fixed, "track=wandb", "track.mode=online", "launch=serial", "${args_no_hyphens}",
        ],
    }  # fmt: skip
    return _header(grid, listed) + yaml.safe_dump(body, sort_keys=False, default_flow_style=None, width=110)


def _header(grid: Study, listed: int) -> str:
    name, project = grid.name, grid.base.track.project
    lines = [
        f"The grid of conf/experiment/{name}.yaml as a W&B sweep; made by `attnlab workspace experiment={name} --sweep`.",
        f"Use: wandb sweep --project {project} conf/wandb_sweep/{name}.yaml, then the command that it prints.",
        "A run that is done is not trained again: its agent ends at once, and W&B shows nothing of it.",
    ]
    if listed:
        lines += [
            f"W&B's grids cannot hold the {listed} cells that the study lists beside its grid; afterwards",
            f"`attnlab run experiment={name}` runs those alone.",
        ]
    return "".join(f"# {line}\n" for line in lines)


def _value(text: str) -> int | float | str:
    """Numbers as numbers where an agent writes them the same way; all else as the command line takes it, since an
    agent would make None of null and True of true.
    """
    value = yaml.safe_load(text)
    return value if isinstance(value, int | float) and str(value) == text else text
