"""Any bytes as parallel text: the pairs that were written, or one sentence that names file and line."""

import gzip
import json
import tempfile
from pathlib import Path

import pytest
from data.settings import data_config, write_split
from fuzz.counting import cases, one_sentence, refused_well, tried
from hypothesis import assume, example, given
from hypothesis import strategies as st

from attnlab.data.corpus import load_corpus
from attnlab.data.files import read_files
from attnlab.data.tokenizer import READ_AS_SPACE, UNK, prepare_tokenizer
from attnlab.errors import UserError

# Line ends of other systems and of Python, controls, marks of direction, a byte order mark, composed and wide letters.
ODD = "\x00\x07\x0b\x0c\x1b\x1c\x1d\x1e\x1f\x7f\x85\u2028\u2029\u202e\ufeff\u0301ß中😀\u2581\u2585\u2047 \t\"'<>"
letters = st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"))
short = st.text(letters, max_size=12)
huge = letters.map(lambda letter: letter * 20_000)
parts = st.one_of(short, short, short, short, short, short, huge)
# A line is parts between carriage returns, and how it ends.
lines = st.tuples(st.lists(parts, min_size=1, max_size=3), st.sampled_from(["\n", "\n", "\r\n"]))
texts = st.text(letters, max_size=30)


def written(content, bom, last):
    """The bytes of a file of such lines, and the sentences in it by the rules of files.py, without its code."""
    spelled, sentences = "", []
    for pieces, end in content:
        spelled += "\r".join(pieces) + end
        # One carriage return before the line feed is part of the line's end, every other one is a space.
        own_end = end == "\n" and len(pieces) > 1 and pieces[-1] == ""
        sentences.append(" ".join(pieces[:-1] if own_end else pieces))
    if not last and spelled:
        spelled = spelled[:-1] + "x"  # the last line without its line feed
        pieces, end = content[-1]
        sentences[-1] = " ".join(pieces) + (" x" if end == "\r\n" else "x")
    return ("\ufeff" if bom else "").encode() + spelled.encode(), sentences


@cases(2700)
@given(
    st.lists(st.tuples(lines, lines), max_size=6), st.booleans(), st.booleans(), st.booleans(), st.booleans()
)
def test_what_was_written_is_read(pairs, bom, last, zipped, tabbed):
    tried("text files: written, read")
    sides = [[line for line, _ in pairs], [line for _, line in pairs]]
    for side in sides:  # at the very start of a file it is a mark, not text
        assume(not side or not side[0][0][0].startswith("\ufeff"))
    with tempfile.TemporaryDirectory() as name:
        expected = []
        for code, side in zip(("en", "de"), sides, strict=True):
            content, sentences = written(side, bom, last)
            expected.append(sentences)
            path = Path(name) / f"train.{code}{'.gz' if zipped else ''}"
            path.write_bytes(gzip.compress(content, 1) if zipped else content)
        read = read_files(name, "train", "en", "de")
        assert [read.src, read.tgt] == expected
        if tabbed:  # the same sentences as objects: a file of another form gives the same
            rows = [{"en": a, "de": b} for a, b in zip(*expected, strict=True)]
            other = Path(name) / "other.jsonl"
            other.write_text("".join(json.dumps(row) + "\n" for row in rows))
            assert read_files(name, "other", "en", "de").src == read.src


@cases(2500)
@given(
    st.one_of(
        st.binary(max_size=80),
        st.lists(st.sampled_from([b"a", b"\t", b"\n", b"\r\n", b"{", b'"en"', b": 1", b"}", b"\xff", b"[", b"\\ud800"])).map(b"".join),
        texts.map(lambda text: json.dumps({"en": text, "de": text}, ensure_ascii=False).encode() + b"\n"),
    ),
    st.sampled_from(["en", "tsv", "jsonl", "en.gz", "tsv.gz", "jsonl.gz"]),
    st.booleans(),
)  # fmt: skip
@example(b"[" * 100_000 + b"\n", "jsonl", False)
@example(b'{"en": ' + b"9" * 5000 + b"}\n", "jsonl", False)
@example(b'{"en": "\\ud800", "de": "x"}\n', "jsonl", False)
def test_any_bytes_are_pairs_or_a_sentence(content, ending, zipped):
    tried("text files: any bytes")
    with tempfile.TemporaryDirectory() as name:
        endings = [ending, ending.replace("en", "de")] if ending.startswith("en") else [ending]
        for one in endings:
            Path(name, f"train.{one}").write_bytes(gzip.compress(content, 1) if zipped else content)
        try:
            pairs = read_files(name, "train", "en", "de")
        except UserError as error:
            refused_well(error)
        else:
            assert len(pairs.src) == len(pairs.tgt)
            assert not any("\n" in text or "\r" in text for text in pairs.src + pairs.tgt)


BROKEN = [b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\xc0\xaf", b"\xe2\x82", b"\xf5\x80\x80\x80", b"\x80"]


@cases(1200)
@given(st.lists(texts, min_size=1, max_size=9), st.data(), st.booleans(), st.booleans())
def test_bytes_that_are_not_utf8_are_named_by_line(content, data, second, zipped):
    tried("text files: not UTF-8")
    place = data.draw(st.integers(0, len(content) - 1))
    rows = [text.encode() for text in content]
    cut = data.draw(st.integers(0, len(content[place])))
    rows[place] = (
        content[place][:cut].encode() + data.draw(st.sampled_from(BROKEN)) + content[place][cut:].encode()
    )
    broken, fine = b"".join(row + b"\n" for row in rows), b"x\n" * len(rows)
    with tempfile.TemporaryDirectory() as name:
        for code, body in (("en", fine if second else broken), ("de", broken if second else fine)):
            path = Path(name, f"train.{code}{'.gz' if zipped else ''}")
            path.write_bytes(gzip.compress(body, 1) if zipped else body)
        with pytest.raises(UserError) as caught:
            read_files(name, "train", "en", "de")
    assert one_sentence(str(caught.value))
    named = f"train.{'de' if second else 'en'}{'.gz' if zipped else ''}, line {place + 1}: not UTF-8"
    assert named in str(caught.value)


pairs_of_texts = st.lists(st.tuples(texts, texts), max_size=8)


@cases(200)
@given(
    pairs_of_texts, pairs_of_texts.filter(bool), pairs_of_texts.filter(bool), st.integers(1, 200), st.sampled_from(["bpe", "unigram"]),
    st.one_of(st.none(), st.integers(1, 9)),
)  # fmt: skip
def test_any_corpus_is_read_whole_and_its_text_comes_back(train, dev, test, size, kind, limit):
    tried("corpus and vocabulary")
    with tempfile.TemporaryDirectory() as name:
        for stem, pairs in (("train", train), ("val", dev), ("test_2016_flickr", test)):
            sides = [
                [a.removeprefix("\ufeff") for a, _ in pairs],
                [b.removeprefix("\ufeff") for _, b in pairs],
            ]
            write_split(Path(name), stem, *sides)
        config = data_config(
            "files", dir=name, train_pairs=limit, tokenizer={"kind": kind, "vocab_size": size}
        )
        try:
            corpus = load_corpus(config)
            report = corpus.report
            gone = [key for key in report if key.startswith("train/dropped")]
            wanted = len(train) if limit is None else limit
            assert len(corpus.train) + sum(int(report[key]) for key in gone) == wanted
            assert (len(corpus.dev), len(corpus.test)) == (len(dev), len(test))
            tokenizer = prepare_tokenizer(corpus, config.tokenizer, Path(name) / "cache")
        except UserError as error:
            refused_well(error)
            return
        known = [*corpus.train.src, *corpus.train.tgt]
        ids = tokenizer.encode(known)
        assert not any(UNK in sentence for sentence in ids)
        spaced = [text.translate(str.maketrans(READ_AS_SPACE)) for text in known]
        assert tokenizer.decode(ids) == [" ".join(filter(None, text.split(" "))) for text in spaced]
