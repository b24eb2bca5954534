"""What the tests of this folder share: configs made from conf/data, and where the real Multi30k may lie."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from attnlab.config import DataConfig

ROOT = Path(__file__).parents[2]
MULTI30K = Path(os.environ.get("ATTNLAB_MULTI30K") or ROOT.parent / "shared" / "data" / "multi30k")
needs_multi30k = pytest.mark.skipif(
    not MULTI30K.is_dir(), reason="no Multi30k files: set ATTNLAB_MULTI30K to the folder that holds them"
)


def data_config(name: str, **changes: Any) -> DataConfig:
    """conf/data/<name>.yaml with `changes`, typed and checked as the program does it."""
    values = OmegaConf.load(ROOT / "conf" / "data" / f"{name}.yaml")
    return OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(DataConfig), values, changes))


def write_split(folder: Path, stem: str, src: list[str], tgt: list[str]) -> None:
    """The split as two plain files, en and de."""
    for code, lines in (("en", src), ("de", tgt)):
        (folder / f"{stem}.{code}").write_bytes("".join(line + "\n" for line in lines).encode("utf-8"))
