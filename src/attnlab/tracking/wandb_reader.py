"""Reads the .wandb file of a run: what W&B really recorded, without an account and without its server.

Format: 7 bytes of file header, `:W&B`, the little-endian magic 0xBEE1 and a version byte 0; then LevelDB's log format
(github.com/google/leveldb/blob/main/doc/log_format.md): blocks of 32 KiB holding chunks `crc32 (4), length (2),
type (1), data`, where a record is one FULL chunk or a FIRST, any MIDDLE and a LAST one, and a block's tail of less
than 7 bytes is padding. The checksum is plain CRC-32 over type and data (LevelDB masks a CRC-32C). Each record is a
`wandb_internal.Record` protobuf message.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_FILE_HEADER = struct.pack("<4sHB", b":W&B", 0xBEE1, 0)
_BLOCK = 32 * 1024
_CHUNK_HEADER = struct.Struct("<IHB")  # crc32, length, type
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


@dataclass
class WandbRun:
    """One run as W&B recorded it; names, values and types as they were logged.

    history: one dict a step, with `_step`; NaN and infinities are floats. metrics: define_metric name -> the
    summaries asked for. hidden: metrics that get no panel of their own. exit_code: None for a run that was killed or
    still goes on.
    """

    run_id: str = ""
    name: str = ""
    project: str = ""
    group: str = ""
    job_type: str = ""
    tags: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, set[str]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    exit_code: int | None = None


def read_wandb(path: Path) -> WandbRun:
    """Read a .wandb file, or the one in a run directory. A file cut off by a kill is read up to the cut.

    Raises ValueError for a file that is not W&B's, or is damaged before its end, or holds several runs.
    """
    from wandb.proto.wandb_internal_pb2 import Record  # type: ignore[attr-defined]

    if path.is_dir():
        (path,) = path.glob("*.wandb")
    run = WandbRun()
    for data in read_chunks(path.read_bytes()):
        record = Record.FromString(data)
        match record.WhichOneof("record_type"):
            case "run":
                if run.run_id not in ("", record.run.run_id):
                    raise ValueError(f"{path}: two runs in one file, {run.run_id} and {record.run.run_id}")
                run.run_id = record.run.run_id
                run.name = record.run.display_name
                run.project = record.run.project
                run.group = record.run.run_group
                run.job_type = record.run.job_type
                run.tags = list(record.run.tags)
                _update(run.config, record.run.config)
            case "config":
                _update(run.config, record.config)
            case "summary":
                _update(run.summary, record.summary)
            case "history":
                row: dict[str, Any] = {"_step": record.history.step.num}
                for item in record.history.item:
                    _put(row, _keys(item), json.loads(item.value_json))
                run.history.append(row)
            case "metric":
                metric, wanted = record.metric.name or record.metric.glob_name, record.metric.summary
                summaries = {name for name in ("min", "max", "mean", "best", "last") if getattr(wanted, name)}
                if summaries:
                    run.metrics[metric] = summaries
                if record.metric.options.hidden:
                    run.hidden.add(metric)
            case "exit":
                run.exit_code = record.exit.exit_code
    run.config.pop("_wandb", None)
    return run


def read_chunks(data: bytes) -> Iterator[bytes]:
    """The records' bytes, in order, up to where the file was cut off. Raises ValueError for a damaged chunk."""
    for _, record in _records(data):
        yield record


def whole_length(data: bytes) -> int:
    """Bytes up to the end of the last whole record, past which a kill left a part of one, or nothing."""
    return max((end for end, _ in _records(data)), default=min(len(data), len(_FILE_HEADER)))


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(where it ends, its bytes) of each whole record."""
    if data[: len(_FILE_HEADER)] != _FILE_HEADER[: len(data)]:
        raise ValueError("not a .wandb file of version 0")
    position = len(_FILE_HEADER)
    parts: list[bytes] = []
    while position + _CHUNK_HEADER.size <= len(data):
        left_in_block = _BLOCK - position % _BLOCK
        if left_in_block < _CHUNK_HEADER.size:
            position += left_in_block
            continue
        crc, length, kind = _CHUNK_HEADER.unpack_from(data, position)
        start, end = position + _CHUNK_HEADER.size, position + _CHUNK_HEADER.size + length
        if length > left_in_block - _CHUNK_HEADER.size:
            raise ValueError(
                f"damaged at byte {position}: a chunk of {length} bytes does not fit into its block"
            )
        if end > len(data) or kind == 0:
            return  # the last write before a kill, or the zeros that a crashed machine leaves of it
        if zlib.crc32(data[start - 1 : end]) != crc:  # the type byte stands just before the data
            raise ValueError(f"damaged at byte {position}: the checksum does not fit")
        chunk = data[start:end]
        if (kind in (_FULL, _FIRST)) == bool(parts) or kind not in (_FULL, _FIRST, _MIDDLE, _LAST):
            raise ValueError(f"damaged at byte {position}: a chunk of type {kind} out of order")
        parts.append(chunk)
        if kind in (_FULL, _LAST):
            yield end, b"".join(parts)
            parts = []
        position = end


def _update(target: dict[str, Any], record: Any) -> None:
    """Apply a config or summary record: `update` sets values at a path of keys, `remove` drops them."""
    for item in record.update:
        _put(target, _keys(item), json.loads(item.value_json))
    for item in record.remove:
        *parents, last = _keys(item)
        inner = target
        for key in parents:
            inner = inner.get(key, {})
        inner.pop(last, None)


def _keys(item: Any) -> list[str]:
    return list(item.nested_key) or [item.key]


def _put(target: dict[str, Any], keys: list[str], value: Any) -> None:
    *parents, last = keys
    for key in parents:
        if not isinstance(target.get(key), dict):
            target[key] = {}
        target = target[key]
    target[last] = value
