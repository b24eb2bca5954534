"""Parallel files against the lists they were written from, and every way in which they can be broken."""

import gzip
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from settings import write_split

from attnlab.data.files import MENDED, read_files
from attnlab.errors import UserError
from attnlab.tracking.folder import RunFolder

LINE_ENDS_OF_PYTHON = ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
EN, DE = ["a man", 'he said "no', ""], ["ein Mann", 'er sagte "nein', "leer"]


def _write(folder, form, src, tgt, stem="train"):
    """The pairs in one of the six forms."""
    match form.removesuffix(".gz"):
        case "text":
            files = {f"{stem}.en": src, f"{stem}.de": tgt}
        case "tsv":
            files = {f"{stem}.tsv": [f"{a}\t{b}" for a, b in zip(src, tgt, strict=True)]}
        case "jsonl":
            rows = [{"id": i, "en": a, "de": b} for i, (a, b) in enumerate(zip(src, tgt, strict=True))]
            files = {
                f"{stem}.jsonl": [json.dumps(row, ensure_ascii=i % 2 == 0) for i, row in enumerate(rows)]
            }
    for name, lines in files.items():
        content = "".join(line + "\n" for line in lines).encode("utf-8")
        if form.endswith(".gz"):
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)


FORMS = ["text", "text.gz", "tsv", "tsv.gz", "jsonl", "jsonl.gz"]
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\t"), max_size=20)


@pytest.mark.parametrize("form", FORMS)
def test_each_form_gives_the_lines_that_were_written(tmp_path, form):
    _write(tmp_path, form, EN, DE)
    pairs = read_files(str(tmp_path), "train", "en", "de")
    assert (pairs.src, pairs.tgt) == (EN, DE)
    assert pairs.counts == dict.fromkeys(MENDED, 0)
    turned = read_files(str(tmp_path), "train", "de", "en")
    assert form == "tsv" or form == "tsv.gz" or (turned.src, turned.tgt) == (DE, EN)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(pairs=st.lists(st.tuples(texts, texts), min_size=1, max_size=8))
def test_any_text_survives_each_form(tmp_path, form, pairs):
    src, tgt = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    src[0] = src[0].lstrip("\ufeff")  # a byte order mark at the very start is not text
    tgt[0] = tgt[0].lstrip("\ufeff")
    _write(tmp_path, form, src, tgt)
    read = read_files(str(tmp_path), "train", "en", "de")
    assert (read.src, read.tgt) == (src, tgt)


def test_R34_lines_end_at_line_feeds_alone(tmp_path):
    src = [f"left{LINE_ENDS_OF_PYTHON[i % 8]}right {i}" for i in range(1000)]
    tgt = [f"satz {i}" for i in range(1000)]
    write_split(tmp_path, "train", src, tgt)
    pairs = read_files(str(tmp_path), "train", "en", "de")
    assert (pairs.src, pairs.tgt) == (src, tgt)
    assert pairs.counts["control_characters"] == 1000
    assert (
        len("".join(line + "\n" for line in src).splitlines()) != 1000
    )  # what the obvious reader makes of it


def test_R34_counts_that_differ_raise_with_both_numbers(tmp_path):
    write_split(tmp_path, "train", ["x"] * 999, ["y"] * 1000)
    with pytest.raises(UserError, match=r"train\.en has 999 lines and train\.de has 1000"):
        read_files(str(tmp_path), "train", "en", "de")


@pytest.mark.parametrize("ending", [b"", b"\n"])
def test_the_last_line_may_lack_its_line_feed(tmp_path, ending):
    (tmp_path / "train.en").write_bytes(b"a\nb" + ending)
    (tmp_path / "train.de").write_bytes(b"c\nd\n")
    assert read_files(str(tmp_path), "train", "en", "de").src == ["a", "b"]


def test_carriage_returns_and_byte_order_marks_are_mended_and_counted(tmp_path):
    (tmp_path / "train.en").write_bytes(b"\xef\xbb\xbfa\r\nb\n")
    (tmp_path / "train.de").write_bytes(b"c\r\nd\r\n")
    pairs = read_files(str(tmp_path), "train", "en", "de")
    assert (pairs.src, pairs.tgt) == (["a", "b"], ["c", "d"])
    assert pairs.counts == dict.fromkeys(MENDED, 0) | {"carriage_returns": 3, "byte_order_marks": 1}


def test_control_characters_stay_and_their_lines_are_counted(tmp_path):
    src, tgt = ["nul\0 and \x01", "plain"], ["tab\there", "schlicht"]
    write_split(tmp_path, "train", src, tgt)
    pairs = read_files(str(tmp_path), "train", "en", "de")
    assert (pairs.src, pairs.tgt, pairs.counts["control_characters"]) == (src, tgt, 2)


def test_text_that_is_not_utf8_is_named_by_file_and_line(tmp_path):
    (tmp_path / "train.en").write_bytes(b"a\nb\n")
    (tmp_path / "train.de").write_bytes(b"ok\nsch\xf6n\n")
    with pytest.raises(UserError, match=r"train\.de, line 2: not UTF-8"):
        read_files(str(tmp_path), "train", "en", "de")


def test_tsv_has_no_quoting_and_a_header_of_language_codes(tmp_path):
    rows = '"Unbalanced start\tx\n""two""\t\'y\'\n'
    (tmp_path / "plain.tsv").write_text(rows)
    (tmp_path / "named.tsv").write_text("en\tde\n" + rows)
    (tmp_path / "turned.tsv").write_text("de\ten\n" + rows)
    expected = (['"Unbalanced start', '""two""'], ["x", "'y'"])
    for stem in ("plain", "named"):
        pairs = read_files(str(tmp_path), stem, "en", "de")
        assert (pairs.src, pairs.tgt) == expected
    pairs = read_files(str(tmp_path), "turned", "en", "de")
    assert (pairs.tgt, pairs.src) == expected


@pytest.mark.parametrize("form", ["text", "text.gz", "tsv", "tsv.gz"])
def test_a_carriage_return_inside_a_line_becomes_a_space_and_is_counted(tmp_path, form):
    _write(tmp_path, form, ["two\rlines", "one\r"], ["eine", "zwei\r\rZeilen\r"])
    pairs = read_files(str(tmp_path), "train", "en", "de")
    # In a row a tab follows the carriage return of the source, so that it does not end the line.
    last = "one " if form.startswith("tsv") else "one"
    assert (pairs.src, pairs.tgt) == (["two lines", last], ["eine", "zwei  Zeilen"])
    inside, at_ends = (3, 1) if form.startswith("tsv") else (2, 2)
    expected = {"line_breaks_inside": inside, "carriage_returns": at_ends}
    assert pairs.counts == dict.fromkeys(MENDED, 0) | expected
    RunFolder(tmp_path).save_translations("copied", pairs.src + pairs.tgt)  # raises for a line break


def test_a_raw_carriage_return_in_a_json_string_is_still_not_json(tmp_path):
    (tmp_path / "train.jsonl").write_bytes(b'{"en": "two\rlines", "de": "b"}\n')
    with pytest.raises(UserError, match="line 1: not JSON"):
        read_files(str(tmp_path), "train", "en", "de")


def test_line_breaks_inside_json_become_spaces(tmp_path):
    (tmp_path / "train.jsonl").write_text('{"en": "two\\nlines", "de": "zwei\\r\\nZeilen"}\n')
    pairs = read_files(str(tmp_path), "train", "en", "de")
    assert (pairs.src, pairs.tgt) == (["two lines"], ["zwei Zeilen"])
    assert pairs.counts["line_breaks_inside"] == 2


BROKEN = {
    "no such split": ({}, "has no split 'train'"),
    "one side only": ({"train.en": b"a\n"}, r"no train\.de"),
    "two forms": ({"train.en": b"a\n", "train.de": b"b\n", "train.tsv": b"a\tb\n"}, "more than once"),
    "plain and gz": (
        {"train.en": b"a\n", "train.en.gz": gzip.compress(b"a\n"), "train.de": b"b\n"},
        "more than once",
    ),
    "cut gz": ({"train.tsv.gz": gzip.compress(b"a\tb\n" * 99)[:-9]}, r"train\.tsv\.gz cannot be read"),
    "no gz at all": ({"train.tsv.gz": b"a\tb\n"}, r"train\.tsv\.gz cannot be read"),
    "one column": ({"train.tsv": b"a\tb\nc\n"}, r"train\.tsv, line 2: 1 columns"),
    "three columns": ({"train.tsv": b"a\tb\tc\n"}, r"train\.tsv, line 1: 3 columns"),
    "not json": ({"train.jsonl": b'{"en": "a", "de": "b"}\n\n'}, r"train\.jsonl, line 2: not JSON"),
    "no object": ({"train.jsonl": b"[1]\n"}, r"train\.jsonl, line 1: no text under the key 'en'"),
    "other key": ({"train.jsonl": b'{"en": "a", "fr": "b"}\n'}, r"line 1: no text under the key 'de'"),
    "no text": ({"train.jsonl": b'{"en": "a", "de": 3}\n'}, r"line 1: no text under the key 'de'"),
    "half a character": ({"train.jsonl": b'{"en": "\\ud800", "de": "b"}\n'}, "no text under the key 'en'"),
}


@pytest.mark.parametrize(("files", "sentence"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_files_are_one_sentence(tmp_path, files, sentence):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=sentence) as caught:
        read_files(str(tmp_path), "train", "en", "de")
    assert "\n" not in str(caught.value)


def test_the_folder_must_be_given_and_exist(tmp_path):
    with pytest.raises(UserError, match=r"data\.dir is not set"):
        read_files(None, "train", "en", "de")
    with pytest.raises(UserError, match="is not a folder"):
        read_files(str(tmp_path / "nowhere"), "train", "en", "de")


@pytest.mark.parametrize("line", ["[" * 100_000, '{"en": ' + "9" * 5000 + "}"], ids=["deep", "long"])
def test_R34_json_that_is_too_deep_or_too_long_is_a_sentence(tmp_path, line):
    (tmp_path / "train.jsonl").write_text('{"en": "a", "de": "b"}\n' + line + "\n")
    with pytest.raises(UserError, match=r"train\.jsonl, line 2: not JSON"):
        read_files(str(tmp_path), "train", "en", "de")
