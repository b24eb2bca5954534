"""What a workspace and a report need to know of a study."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.config import Site
from attnlab.tracking.folder import folder_of
from attnlab.tracking.wandb_records import own_id

if TYPE_CHECKING:
    from attnlab.study.grid import Study


@dataclass(frozen=True)
class Facts:
    """factors: keys of the run's configuration in W&B that tell cells apart, the arm first, the seed left out.

    run_ids: `run_id` in W&B's configuration, all of them. layers: of each site, in the deepest model of the study.
    bleu: the metric of the first decode protocol.
    """

    study: str
    question: str
    control: str | None
    command: str
    factors: tuple[str, ...]
    run_ids: tuple[str, ...]
    layers: dict[Site, int]
    bleu: str
    project: str
    entity: str | None
    folder: Path


def facts_of(study: Study, command: str) -> Facts:
    """command: what makes the study's runs."""
    configs = [planned.config for planned in study.runs]
    folders = [folder_of(config) for config in configs]
    keys = {item.partition("=")[0]: None for cell in study.cells for item in cell.overrides}
    decoder = max(config.model.decoder_layers for config in configs)
    return Facts(
        study=study.name,
        question=study.base.study.question,
        control=study.control,
        command=command,
        factors=("attention.name", *(_path(key) for key in keys if key not in ("attention", "seed"))),
        run_ids=tuple(own_id(folder.path.name, folder.attempt) for folder in folders),
        layers={
            Site.encoder: max(config.model.encoder_layers for config in configs),
            Site.decoder: decoder,
            Site.cross: decoder,
        },
        bleu=f"test/{study.base.decode.protocols[0]}/bleu",
        project=study.base.track.project,
        entity=study.base.track.entity,
        folder=Path(study.base.output).absolute() / "studies" / study.name,
    )


def _path(key: str) -> str:
    """Where an override's value stands in the configuration: a group's choice is its name."""
    return key if "." in key else f"{key}.name"
