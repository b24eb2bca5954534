"""The tokenizer against SentencePiece itself, the text that went in, and the sentences a user should see."""

import random
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from settings import MULTI30K, data_config, needs_multi30k

from attnlab.config import TokenizerConfig, TokenizerKind
from attnlab.data import tokenizer as module
from attnlab.data.corpus import Corpus, Split, digest, load_corpus
from attnlab.data.tokenizer import BOS, EOS, LONGEST_LINE, PAD, UNK, Tokenizer, prepare_tokenizer, train_model
from attnlab.errors import UserError

KINDS = list(TokenizerKind)
TEXT = """house river mountain window garden letter market singer carpenter yesterday tomorrow morning quickly
never always people children running walking reading thinking between without another question machine kitchen
orange purple silver yellow the lazy dog and jumps over fox"""
SENTENCES = [" ".join(random.Random(i).choices(TEXT.split(), k=9)) + f" {i}." for i in range(30)]
SIZE = {TokenizerKind.bpe: 90, TokenizerKind.unigram: 80}  # pieces that these 30 sentences allow
MARKUP = ["</s> <pad> <unk> <s>", "a</s>b<pad>c", "x</s> y <s> z", "▁under▁lined", "block ▅ and nul \0 here"]


def _corpus(train: list[str], dev: list[str] = ("d",), test: list[str] = ("t",)) -> Corpus:
    splits = [
        Split(name, list(text), list(text), None)
        for name, text in (("train", train), ("dev", dev), ("test", test))
    ]
    return Corpus("made", "en", "de", *splits, {}, digest(splits))


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.value)
def kind(request) -> TokenizerKind:
    return request.param


@pytest.fixture(scope="module")
def marked(kind) -> Tokenizer:
    return Tokenizer(train_model(SENTENCES + MARKUP * 3, TokenizerConfig(kind, SIZE[kind])))


def test_R33_ids_are_four_and_fixed(marked):
    assert (PAD, UNK, BOS, EOS) == (0, 1, 2, 3)
    assert marked.pieces([0, 1, 2, 3]) == ["<pad>", "<unk>", "<s>", "</s>"]
    assert marked.vocab_size == len({*marked.pieces(list(range(marked.vocab_size)))})


def test_R33_markup_is_text_and_ends_nothing(marked):
    for text, ids in zip(MARKUP, marked.encode(MARKUP), strict=True):
        assert not {PAD, UNK, BOS, EOS} & set(ids), text
    words = [" ".join(text.translate(str.maketrans("▁▅\0", "   ")).split()) for text in MARKUP]
    assert marked.decode(marked.encode(MARKUP)) == words


def test_R33_decoding_stops_at_the_id_alone(marked):
    (ids,) = marked.encode(["the lazy dog"])
    assert (
        marked.decode([ids, [BOS, *ids, EOS, *ids, PAD, PAD], [EOS], [], [PAD]])
        == ["the lazy dog"] * 2 + [""] * 3
    )


def test_R33_lines_with_a_reserved_character_are_trained_on_all_the_same(kind):
    tokenizer = Tokenizer(train_model([*SENTENCES, "ß▅ä", "þ\0ð", "ö▁ü"], TokenizerConfig(kind, SIZE[kind])))
    assert tokenizer.decode(tokenizer.encode(["ß▅ä", "þ\0ð", "ö▁ü"])) == ["ß ä", "þ ð", "ö ü"]


def test_R33_a_character_never_seen_is_one_unknown_and_shows(marked):
    (ids,) = marked.encode(["the 猫 dog"])
    assert ids.count(UNK) == 1
    assert marked.decode([ids]) == ["the \u2047 dog"]


ALPHABET = "".join(sorted({*"".join(SENTENCES + MARKUP)} - {*"▁▅\0"}))


@settings(max_examples=300, deadline=None)
@given(text=st.text(ALPHABET, max_size=60))
def test_text_of_known_characters_comes_back_but_for_spaces(marked, text):
    assert marked.decode(marked.encode([text])) == [" ".join(text.split())]


def test_control_characters_and_line_ends_of_python_come_back(kind):
    texts = ["a\x0bb", "a\x85b", "a\u2028b", "a\u2029b", "a\tb", "a\u00a0b", "a\u200bb", "e\u0301 é"]
    tokenizer = Tokenizer(train_model(SENTENCES + texts * 3, TokenizerConfig(kind, SIZE[kind])))
    assert tokenizer.decode(tokenizer.encode(texts)) == texts


def test_R32_a_size_the_text_does_not_allow_gets_the_sizes_it_does(kind):
    def train(size: int) -> int:
        return Tokenizer(train_model(SENTENCES, TokenizerConfig(kind, size))).vocab_size

    with pytest.raises(
        UserError, match=r"vocab_size=8000 is too large for .* allows \d+ to \d+\.$"
    ) as caught:
        train(8000)
    low, high = map(int, re.findall(r"\d+", str(caught.value).split("allows")[1]))
    assert (train(low), train(high)) == (low, high)
    for size in (10, low - 1):
        with pytest.raises(UserError, match=rf"vocab_size={size} is too small: .* so {low} or more"):
            train(size)
    with pytest.raises(UserError, match=f"vocab_size={high + 1} is too large"):
        train(high + 1)


def test_R31_lines_too_long_to_train_on_are_counted_and_still_encoded(kind, tmp_path):
    pieces, long = "the fox " * 3_000, "q" * (LONGEST_LINE + 1)
    used = "ø" * 5_000  # 10,000 bytes
    corpus = _corpus([*SENTENCES, pieces, used, long])
    tokenizer = prepare_tokenizer(corpus, TokenizerConfig(kind, SIZE[kind]), tmp_path)
    assert tokenizer.skipped_lines == 2 * 2  # both sides of `long` and of `pieces`
    for text in (long, used, pieces.strip()):
        assert tokenizer.decode(tokenizer.encode([text])) == [text]


def test_R31_a_corpus_of_nothing_but_long_lines_is_a_sentence(tmp_path):
    with pytest.raises(UserError, match="longer than 16384 bytes"):
        prepare_tokenizer(
            _corpus(["q" * (LONGEST_LINE + 1)] * 5), TokenizerConfig(TokenizerKind.bpe, 50), tmp_path
        )


def test_the_digest_is_pieces_and_scores_and_not_the_bytes(kind):
    config = TokenizerConfig(kind, SIZE[kind])
    ours = Tokenizer(train_model(SENTENCES, config))
    assert Tokenizer(train_model(SENTENCES, config)).model == ours.model
    assert Tokenizer(train_model(SENTENCES, TokenizerConfig(kind, SIZE[kind] - 1))).digest != ours.digest
    assert (
        Tokenizer(train_model([s.replace("market", "basket") for s in SENTENCES], config)).digest
        != ours.digest
    )
    option = ours.model.replace(b"identity", b"identitY")
    piece = ours.model.replace(b"\n\x01z\x15", b"\n\x01Z\x15")  # protobuf: field 1, one byte, "z"; field 2
    assert len({ours.model, option, piece}) == 3
    assert Tokenizer(option).digest == ours.digest
    assert Tokenizer(piece).digest != ours.digest


def test_it_is_trained_on_the_training_split_alone(tmp_path):
    config = TokenizerConfig(TokenizerKind.bpe, 60)
    first = prepare_tokenizer(_corpus(SENTENCES, ["dev one"], ["test one"]), config, tmp_path)
    second = prepare_tokenizer(_corpus(SENTENCES, ["ζ"] * 99, ["ω"] * 99), config, tmp_path)
    assert first.digest == second.digest
    assert len([path for path in (tmp_path / "tokenizer").iterdir() if path.suffix != ".lock"]) == 1


def test_a_kept_vocabulary_with_a_flipped_bit_is_trained_again(tmp_path):
    config = TokenizerConfig(TokenizerKind.bpe, 60)
    first = prepare_tokenizer(_corpus(SENTENCES), config, tmp_path)
    (path,) = (path for path in (tmp_path / "tokenizer").iterdir() if path.suffix != ".lock")
    kept = path.read_bytes()
    at = kept.index("\u2581".encode(), 300)  # a piece with another spelling is a vocabulary all the same
    path.write_bytes(kept[: at + 3] + bytes([kept[at + 3] ^ 1]) + kept[at + 4 :])
    assert prepare_tokenizer(_corpus(SENTENCES), config, tmp_path).digest == first.digest
    assert path.read_bytes() == kept


def test_the_cache_holds_one_file_per_text_kind_and_size(tmp_path, monkeypatch):
    configs = [
        TokenizerConfig(TokenizerKind.bpe, 60),
        TokenizerConfig(TokenizerKind.bpe, 61),
        TokenizerConfig(TokenizerKind.unigram, 70),
    ]
    made = [prepare_tokenizer(_corpus(SENTENCES), config, tmp_path) for config in configs]
    monkeypatch.setattr(module, "train_model", lambda *_: pytest.fail("trained again"))
    again = [prepare_tokenizer(_corpus(SENTENCES), config, tmp_path) for config in configs]
    assert [t.digest for t in made] == [t.digest for t in again]
    assert len({t.digest for t in made}) == 3
    with pytest.raises(pytest.fail.Exception):
        prepare_tokenizer(_corpus(SENTENCES[1:]), configs[0], tmp_path)


TOGETHER = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_tokenizer import SENTENCES, TokenizerConfig, TokenizerKind, _corpus, module
here, train = Path(sys.argv[2]), module.train_model
def slow(*arguments):
    with (here / "log").open("a") as log:
        log.write("trained ")
    time.sleep(0.5)
    return train(*arguments)
module.train_model = slow
(here / f"ready{sys.argv[3]}").touch()
while len(list(here.glob("ready*"))) < 3:
    time.sleep(0.01)
print(module.prepare_tokenizer(_corpus(SENTENCES), TokenizerConfig(TokenizerKind.bpe, 60), here).digest)
"""


def test_runs_that_start_together_train_it_once(tmp_path, request):
    command = [sys.executable, "-c", TOGETHER, str(request.path.parent), str(tmp_path)]
    runs = [subprocess.Popen([*command, str(i)], stdout=subprocess.PIPE, text=True) for i in range(3)]
    digests = [run.communicate(timeout=60)[0].strip() for run in runs]
    assert (tmp_path / "log").read_text() == "trained "
    assert len(set(digests)) == 1
    assert len(digests[0]) == 64


@needs_multi30k
def test_multi30k_has_no_unknown_characters_and_comes_back_as_it_was(tmp_path):
    config = data_config("files", dir=str(MULTI30K))
    corpus = load_corpus(config)
    tokenizer = prepare_tokenizer(corpus, config.tokenizer, tmp_path)
    assert tokenizer.vocab_size == 6000
    for split in (corpus.dev, corpus.test):
        for side in (split.src, split.tgt):
            ids = tokenizer.encode(side)
            assert not any(UNK in sentence for sentence in ids)
            assert tokenizer.decode(ids) == side
