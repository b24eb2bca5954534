from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from test_wandb_mirror import only_record
from tracking_example import log_steps, make_config, make_folder, make_tracker

from attnlab.tracking.status import State
from attnlab.tracking.wandb_reader import read_chunks, read_wandb, whole_length
from attnlab.tracking.wandb_records import find_records, is_offline, is_uploaded, wandb_id_of

pytest.importorskip("wandb", reason="comes with attnlab[wandb]")

HEADER = b":W&B\xe1\xbe\x00"
BLOCK = 32768


def chunk(kind: int, data: bytes) -> bytes:
    return struct.pack("<IHB", zlib.crc32(bytes([kind]) + data), len(data), kind) + data


def write_log(records: list[bytes]) -> bytes:
    """A second implementation of the format, as a writer: LevelDB's rules for splitting records over blocks."""
    data = bytearray(HEADER)
    for record in records:
        first, rest = True, record
        while first or rest:
            space = BLOCK - len(data) % BLOCK
            if space < 7:
                data += bytes(space)
                space = BLOCK
            part, rest = rest[: space - 7], rest[space - 7 :]
            kind = {(True, True): 1, (True, False): 2, (False, False): 3, (False, True): 4}[(first, not rest)]
            data += chunk(kind, part)
            first = False
    return bytes(data)


# 32750 and 32748 bytes leave 4 and 6 bytes in the first block, which are padding; 32747 leaves a bare chunk header.
@pytest.mark.parametrize(
    "sizes",
    [[], [0], [1, 2, 3], [BLOCK * 3], [32754, 5], [32748, 9], [32747, 9], [100, BLOCK - 7, 70000, 0, 1]],
)
def test_records_of_every_size_are_put_together(sizes: list[int]) -> None:
    records = [bytes([index + 1]) * size for index, size in enumerate(sizes)]
    assert list(read_chunks(write_log(records))) == records


def test_a_file_cut_anywhere_is_read_up_to_the_cut() -> None:
    records = [b"a" * 10, b"b" * 40000, b"c" * 20]
    data = write_log(records)
    counts = [len(list(read_chunks(data[:cut]))) for cut in range(len(data) + 1)]
    assert counts == sorted(counts)
    assert counts[7 + 17 - 1 : 7 + 17 + 1] == [0, 1]
    assert counts[-2:] == [2, 3]
    for cut in (0, 3, 24, 30, 40000, len(data) - 1):
        read = list(read_chunks(data[:cut]))
        assert read == records[: len(read)]
    assert list(read_chunks(data + bytes(100))) == records  # zeros after a machine's crash


def test_the_whole_part_of_a_cut_file_is_what_can_be_read_of_it() -> None:
    ends = [len(write_log(records)) for records in ([], [b"a" * 10], [b"a" * 10, b"b" * 40000])]
    data = write_log([b"a" * 10, b"b" * 40000, b"c" * 20])
    for cut in (*range(7), *range(7, len(data), 97), *ends, len(data)):
        wanted = max((end for end in (*ends, len(data)) if end <= cut), default=cut)
        assert whole_length(data[:cut]) == wanted
    assert whole_length(data + bytes(50)) == len(data)  # the zeros that a crashed machine leaves


def test_a_chunk_that_leaves_its_block_is_damage_and_no_cut() -> None:
    data = bytearray(write_log([b"a" * 10]))
    struct.pack_into("<H", data, len(HEADER) + 4, BLOCK)
    with pytest.raises(ValueError, match="damaged at byte 7"):
        list(read_chunks(bytes(data)))


def test_damage_is_an_error() -> None:
    data = bytearray(write_log([b"a" * 10, b"b" * 10]))
    data[7 + 7 + 3] ^= 1
    with pytest.raises(ValueError, match="damaged at byte 7"):
        list(read_chunks(bytes(data)))
    with pytest.raises(ValueError, match="out of order"):
        list(read_chunks(HEADER + chunk(3, b"middle")))
    with pytest.raises(ValueError, match="out of order"):
        list(read_chunks(HEADER + chunk(2, b"first") + chunk(1, b"full")))
    with pytest.raises(ValueError, match="not a"):
        list(read_chunks(b"PK\x03\x04 something else"))


@pytest.mark.slow
def test_a_record_agrees_with_wandbs_own_reader(output: Path, home: Path) -> None:
    with make_tracker(make_folder(output), make_config(output)) as tracker:
        log_steps(tracker, 0, 300)  # more than one block of 32 KiB
        tracker.table(300, "test/samples", ["a"], [["b"]])
        tracker.finish(State.done)
    ours = only_record(output)
    (record,) = find_records(output)
    assert next(record.glob("*.wandb")).stat().st_size > 2 * BLOCK
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(record)]
    text = subprocess.run(
        command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL
    ).stdout
    theirs = [json.loads(line) for line in text.splitlines()]
    (run,) = (entry["run"] for entry in theirs if entry["type"] == "run")
    history = [entry["history"] for entry in theirs if entry["type"] == "history"]
    assert (ours.run_id, ours.project, ours.group, ours.job_type, ours.tags) == (
        run["run_id"], run["project"], run["run_group"], run["job_type"], run["tags"],
    )  # fmt: skip
    config = {key: value for key, value in run["config"]["update"].items() if key != "_wandb"}
    assert strings(ours.config) == strings(config)
    assert len(ours.history) == len(history) == 301
    for row, entry in zip(ours.history, history, strict=True):
        assert row["_step"] == entry["step"]["num"]
        assert strings(flat(row)) == strings(entry["item"])
    metrics = {
        entry["metric"]["name"]: set(entry["metric"]["summary"])
        for entry in theirs
        if entry["type"] == "metric"
    }
    assert ours.metrics == metrics
    (exit_code,) = (entry["exit"]["exit_code"] for entry in theirs if entry["type"] == "exit")
    assert ours.exit_code == exit_code
    last = {}
    for entry in theirs:
        if entry["type"] == "summary":
            last |= flat(entry["summary"]["update"])
    assert strings(flat(ours.summary)) == strings(last)


def flat(value: dict, prefix: str = "") -> dict:
    """Nested keys joined by dots, as `leet inspect` prints them."""
    result = {}
    for key, item in value.items():
        name = f"{prefix}{key}"
        result |= flat(item, f"{name}.") if isinstance(item, dict) and item else {name: item}
    return result


def strings(value: object) -> object:
    """With NaN and the infinities as the words that `leet inspect` prints for them."""
    match value:
        case dict():
            return {key: strings(item) for key, item in value.items()}
        case float() if value != value or value in (float("inf"), float("-inf")):
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
        case int() if not isinstance(value, bool):
            return float(value)  # a whole number of many digits: `leet inspect` prints it without an exponent
        case _:
            return value


def test_a_folder_without_or_with_two_records_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unpack"):
        read_wandb(tmp_path)


def test_records_are_found_by_run_and_in_order_of_time(tmp_path: Path) -> None:
    names = [
        "run-20260102_000000-ab",
        "offline-run-20260101_000000-ab",
        "offline-run-20260103_000000-ab-1",
        "offline-run-20260104_000000-ab_1",
        "offline-run-20260105_000000-xab",
    ]
    for name in [*names, "media", "offline-run-ab"]:
        (tmp_path / "wandb" / name).mkdir(parents=True)
    (tmp_path / "wandb" / "latest-run").symlink_to(names[0])
    assert [record.name for record in find_records(tmp_path, "ab")] == [names[1], names[0], names[2]]
    assert [record.name for record in find_records(tmp_path, "ab_1")] == [names[3]]
    assert len(find_records(tmp_path)) == 5
    assert [wandb_id_of(record) for record in find_records(tmp_path)] == ["ab", "ab", "ab", "ab_1", "xab"]
    assert [is_offline(record) for record in find_records(tmp_path, "ab")] == [True, False, True]
    assert find_records(tmp_path / "nothing") == []


def test_a_record_that_grew_after_its_upload_is_not_uploaded(tmp_path: Path) -> None:
    record = tmp_path / "run-ab.wandb"
    record.touch()
    assert not is_uploaded(tmp_path)
    marker = tmp_path / "run-ab.wandb.synced"
    marker.touch()
    assert is_uploaded(tmp_path)
    newer = marker.stat().st_mtime + 5
    os.utime(record, (newer, newer))
    assert not is_uploaded(tmp_path)
