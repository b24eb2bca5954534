from __future__ import annotations

import math
import resource
from pathlib import Path

import pytest

from attnlab.errors import UserError
from attnlab.tracking.files import CannotWrite
from attnlab.tracking.records import RecordFile, read_metrics, read_records


def test_values_come_back_exactly(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "metrics.jsonl")
    values = {
        "a/x": 0.1 + 0.2,
        "a/tiny": 5e-324,
        "a/big": 1.7976931348623157e308,
        "a/inf": math.inf,
        "a/neg": -math.inf,
    }
    file.append({"step": 3, **values})
    file.append({"step": 3, "b/nan": math.nan})
    first, second = read_metrics(file.path)
    assert first == {"step": 3, **values}
    assert math.isnan(second["b/nan"])
    assert isinstance(second["step"], int)


def test_each_record_can_be_read_while_the_file_is_open(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "metrics.jsonl")
    for step in range(5):
        file.append({"step": step})
        assert len(read_records(file.path)) == step + 1


@pytest.mark.parametrize("cut", range(1, 25))
def test_a_torn_last_line_is_dropped_on_reading_and_removed_by_rewind(tmp_path: Path, cut: int) -> None:
    whole = b'{"step": 1, "a/b": 1.0}\n{"step": 2, "a/b": 2.0}\n'
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(whole[:-cut])
    assert read_metrics(path) == [{"step": 1, "a/b": 1.0}]
    file = RecordFile(path)
    file.rewind(5)
    file.append({"step": 2, "a/b": 2.0})
    file.close()
    assert path.read_bytes() == whole


def test_a_missing_or_empty_file_has_no_records(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    assert read_metrics(path) == []
    RecordFile(path).rewind(0)
    assert not path.exists()
    path.touch()
    assert read_metrics(path) == []


@pytest.mark.parametrize("line", ["{", "[1]", '{"a/b": 1.0}', '{"step": null}', "12"])
def test_damage_before_the_end_is_an_error_that_names_the_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n' + line + '\n{"step": 3}\n')
    with pytest.raises(UserError, match=r"metrics\.jsonl, line 2: got .* damaged"):
        read_metrics(path)
    with pytest.raises(UserError, match="line 2"):
        RecordFile(path).rewind(9)
    assert path.read_text().endswith(line + '\n{"step": 3}\n')  # nothing of it was written over


def test_a_disk_that_takes_a_part_of_a_line_costs_that_line_alone(tmp_path: Path) -> None:
    """The limit on a file's size stands for the full disk: the last write that fits is cut short, the next one fails."""
    path = tmp_path / "metrics.jsonl"
    file = RecordFile(path)
    for step in range(2):
        file.append({"step": step})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 5, before[1]))
    try:
        with pytest.raises(CannotWrite, match=r"cannot write .*metrics\.jsonl \("):
            file.append({"step": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    file.close()
    assert path.read_bytes().endswith(b'{"ste')
    assert [record["step"] for record in read_records(path)] == [0, 1]
    file.rewind(1)
    file.append({"step": 2})
    assert [record["step"] for record in read_records(path)] == [0, 1, 2]
