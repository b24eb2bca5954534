from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from attnlab.tracking.media import (
    MAX_IMAGES,
    encode_png,
    from_record,
    make_histogram,
    make_table,
    save_images,
    to_record,
)

Image = pytest.importorskip("PIL.Image", reason="pillow, the oracle for PNG files, comes with attnlab[wandb]")


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        assert image.mode == "L"
        return np.asarray(image)


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (256, 1), (1, 300)])
def test_png_files_are_read_back_by_pillow(tmp_path: Path, shape: tuple[int, int]) -> None:
    wanted = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    (tmp_path / "a.png").write_bytes(encode_png(wanted))
    np.testing.assert_array_equal(pixels(tmp_path / "a.png"), wanted)
    (tmp_path / "b.png").write_bytes(encode_png(wanted.T))  # not contiguous
    np.testing.assert_array_equal(pixels(tmp_path / "b.png"), wanted.T)


def test_a_flat_attention_map_is_visible_and_proportional(tmp_path: Path) -> None:
    weights = np.array([[0.01, 0.02], [0.04, 0.0]])
    images = save_images(tmp_path, 5, "probe/maps/cross", [("head 1", weights)])
    ((caption, path),) = images.items
    shown = pixels(path)
    assert shown.shape == (240, 240)
    np.testing.assert_array_equal(shown[::120, ::120], [[64, 128], [255, 0]])
    np.testing.assert_array_equal(shown, shown[::120, ::120].repeat(120, 0).repeat(120, 1))
    assert caption == "head 1 (white = 0.04)"


def test_pictures_logged_together_have_one_size(tmp_path: Path) -> None:
    items = [("a", np.full((2, 3), 0.5)), ("b", np.full((4, 1), 0.5))]
    shown = [pixels(path) for _, path in save_images(tmp_path, 1, "maps", items).items]
    assert [image.shape for image in shown] == [(240, 180), (240, 180)]
    np.testing.assert_array_equal(shown[0][::60, ::60], [[255] * 3, [255] * 3, [0] * 3, [0] * 3])
    np.testing.assert_array_equal(shown[1][::60, ::60], [[255, 0, 0]] * 4)


def test_large_pictures_are_not_enlarged_and_a_black_one_stays_black(tmp_path: Path) -> None:
    ((_, path),) = save_images(tmp_path, 1, "maps", [("a", np.zeros((300, 500)))]).items
    np.testing.assert_array_equal(pixels(path), np.zeros((300, 500)))


def test_values_that_are_not_finite_are_black_and_counted(tmp_path: Path) -> None:
    weights = np.array([[math.nan, 0.5, math.inf]])
    ((caption, path),) = save_images(tmp_path, 1, "maps", [("a", weights)]).items
    np.testing.assert_array_equal(pixels(path)[0, ::80], [0, 255, 0])
    assert "2 not finite" in caption
    save_images(tmp_path, 2, "maps", [("a", np.full((2, 2), math.nan))])


@pytest.mark.parametrize(
    "array", [np.zeros(3), np.zeros((2, 3, 3)), np.zeros((0, 3)), np.full((2, 2), 1.1), np.full((2, 2), -0.1)]
)
def test_what_is_no_picture_is_refused(tmp_path: Path, array: np.ndarray) -> None:
    with pytest.raises(ValueError, match="probe/maps"):
        save_images(tmp_path, 1, "probe/maps", [("a", array)])


@pytest.mark.parametrize("count", [0, MAX_IMAGES + 1])
def test_a_count_that_wandb_would_cut_is_refused(tmp_path: Path, count: int) -> None:
    with pytest.raises(ValueError, match=str(MAX_IMAGES)):
        save_images(tmp_path, 1, "maps", [("a", np.zeros((2, 2)))] * count)


def test_the_limit_is_wandbs() -> None:
    wandb = pytest.importorskip("wandb")
    assert wandb.Image.MAX_ITEMS == MAX_IMAGES


@pytest.mark.parametrize("name", ["", "../up", "a//b", "/root", "a/../b", "a b", "a/.hidden"])
def test_a_name_cannot_leave_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        save_images(tmp_path, 1, name, [("a", np.zeros((2, 2)))])


def test_records_outlive_a_move_of_the_folder(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    images = save_images(before, 1, "maps", [("a", np.eye(2))])
    table = make_table(2, "samples", ["source", "n"], [["ein", 1], ["zwei", 2.5]])
    records = [to_record(images, before), to_record(table, before)]
    before.rename(after)
    read_images, read_table = (from_record(record, after) for record in records)
    assert read_images.items[0][1].exists()
    assert read_table == table


def test_an_uneven_table_is_refused() -> None:
    with pytest.raises(ValueError, match="samples"):
        make_table(1, "samples", ["a", "b"], [["1", "2"], ["1"]])


def test_a_histogram_outlives_its_file(tmp_path: Path) -> None:
    histogram = make_histogram(3, "train/grad_log10/w_q/cross", -12, 4, [1, 0, 7])
    record = json.loads(json.dumps(to_record(histogram, tmp_path)))
    assert from_record(record, tmp_path) == histogram


@pytest.mark.parametrize(
    ("low", "high", "counts"),
    [(0, 1, []), (0, 1, [1, -1]), (1, 1, [1]), (2, 1, [1]), (0, math.inf, [1]), (math.nan, 1, [1])],
)
def test_what_is_no_histogram_is_refused(low: float, high: float, counts: list[int]) -> None:
    with pytest.raises(ValueError, match="train/x"):
        make_histogram(1, "train/x", low, high, counts)
