"""The kept grammar and ids against the plain path that makes them anew."""

from pathlib import Path

import numpy as np
import pytest
from settings import data_config

from attnlab.data import kept_grammar as grammar_module
from attnlab.data import kept_ids as ids_module
from attnlab.data.batching import encode
from attnlab.data.cache import SEAL, sealed, whole
from attnlab.data.corpus import load_corpus
from attnlab.data.kept_grammar import kept_grammar
from attnlab.data.kept_ids import kept_ids
from attnlab.data.tokenizer import prepare_tokenizer

SIZES = {"train_pairs": 60, "dev_pairs": 5, "test_pairs": 5}


def test_the_kept_grammar_is_the_drawn_one_and_is_not_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = data_config("grammar", **SIZES)
    drawn = load_corpus(config)
    assert load_corpus(config, tmp_path) == drawn
    monkeypatch.setattr("attnlab.data.grammar.generate", lambda *_: pytest.fail("drawn again"))
    assert load_corpus(config, tmp_path) == drawn


def test_other_code_of_the_grammar_draws_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kept_grammar(1, {"train": 3}, tmp_path)
    monkeypatch.setattr(grammar_module, "CODE", "edited")
    assert kept_grammar(1, {"train": 3}, tmp_path) == first
    assert len(list((tmp_path / "grammar").glob("[0-9a-f]*[0-9a-f]"))) == 2


def test_one_text_is_parsed_once_in_a_process(tmp_path: Path) -> None:
    """A worker makes many runs of one text."""
    first = kept_grammar(1, {"train": 3}, tmp_path)
    assert kept_grammar(1, {"train": 3}, tmp_path) is first
    assert kept_grammar(2, {"train": 3}, tmp_path) != first


def test_kept_ids_are_those_of_encode_and_lie_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = data_config("grammar", **SIZES)
    corpus = load_corpus(config)
    tokenizer = prepare_tokenizer(corpus, config.tokenizer, tmp_path)
    for again in range(2):
        kept = kept_ids(corpus, tokenizer, tmp_path)
        for split in (corpus.train, corpus.dev, corpus.test):
            plain = encode(split, tokenizer)
            for side in ("src", "tgt"):
                pairs = zip(getattr(kept[split.name], side), getattr(plain, side), strict=True)
                assert all(np.array_equal(ours, theirs) for ours, theirs in pairs)
        if not again:
            monkeypatch.setattr("attnlab.data.kept_ids.encode", lambda *_: pytest.fail("encoded again"))


def test_other_code_of_encoding_encodes_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = data_config("grammar", **SIZES)
    corpus = load_corpus(config)
    tokenizer = prepare_tokenizer(corpus, config.tokenizer, tmp_path)
    kept_ids(corpus, tokenizer, tmp_path)
    monkeypatch.setattr(ids_module, "CODE", "edited")
    monkeypatch.setattr(
        ids_module, "encode", lambda split, _: encode(split.select([*range(len(split))][::-1]), tokenizer)
    )
    kept = kept_ids(corpus, tokenizer, tmp_path)
    assert np.array_equal(kept["train"].src[0], encode(corpus.train, tokenizer).src[-1])


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_file_is_made_again(tmp_path: Path, damage: str) -> None:
    config = data_config("grammar", **SIZES)
    corpus = load_corpus(config, tmp_path)
    (path,) = (path for path in (tmp_path / "grammar").iterdir() if path.suffix != ".lock")
    kept = path.read_bytes()
    path.write_bytes(
        {"cut": kept[:-7], "empty": b"", "flipped": kept[:-9] + bytes([kept[-9] ^ 1]) + kept[-8:]}[damage]
    )
    assert load_corpus(config, tmp_path) == corpus
    assert path.read_bytes() == kept


def test_a_cache_that_cannot_be_written_costs_time_alone(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    config = data_config("grammar", **SIZES)
    corpus = load_corpus(config, file)
    tokenizer = prepare_tokenizer(corpus, config.tokenizer, tmp_path)
    kept = kept_ids(corpus, tokenizer, file)
    assert [len(kept[name]) for name in ("train", "dev", "test")] == [60, 5, 5]


def test_a_seal_holds_for_its_content_alone() -> None:
    assert whole(sealed(b"abc"))
    assert not whole(sealed(b"abc")[:-1] + b"d")
    assert not whole(b"")
    assert len(sealed(b"")) == SEAL
