"""The corpus of a run: policies against small corpora whose right answer is written out, and every shipped config."""

import hashlib

import pytest
from settings import MULTI30K, ROOT, data_config, needs_multi30k, write_split

from attnlab.config import DataConfig, Source
from attnlab.data.corpus import Split, digest, load_corpus
from attnlab.errors import UserError


def _files(folder, train, dev=(("d", "d"),), test=(("t", "t"),), **changes):
    for stem, pairs in (("train", train), ("val", dev), ("test_2016_flickr", test)):
        write_split(folder, stem, [pair[0] for pair in pairs], [pair[1] for pair in pairs])
    return load_corpus(data_config("files", dir=str(folder), **changes))


@pytest.mark.parametrize("path", sorted((ROOT / "conf" / "data").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_config_is_complete(path):
    config = data_config(path.stem)
    assert isinstance(config, DataConfig)
    assert config.name == path.stem
    for name in ("train_pairs", "dir", "revision", "max_pieces"):
        getattr(config, name)  # raises while a value is missing
    if config.source is Source.hub and config.name != "hub":
        assert len(config.revision) == 40


def test_R34_blank_sides_of_train_are_dropped_together_and_counted(tmp_path):
    train = [(f"s{i}", f"t{i}") for i in range(1000)]
    train[3], train[500], train[999] = ("", "t3"), ("s500", " \u00a0\t"), (" ", "")
    corpus = _files(tmp_path, train)
    kept = [pair for i, pair in enumerate(train) if i not in (3, 500, 999)]
    assert list(zip(corpus.train.src, corpus.train.tgt, strict=True)) == kept
    assert corpus.report["train/read"] == 1000
    assert corpus.report["train/dropped_blank_source"] == 1
    assert corpus.report["train/dropped_blank_target"] == 1
    assert corpus.report["train/dropped_blank_both"] == 1
    assert corpus.report["train/pairs"] == 997


def test_dev_and_test_never_shrink_and_blanks_there_are_named_by_line(tmp_path):
    test = [("a", "b"), ("", "c"), ("d", " "), ("e", "")]
    corpus = _files(tmp_path, [("x", "y")], test=test, dev=test)
    for split in (corpus.dev, corpus.test):
        assert list(zip(split.src, split.tgt, strict=True)) == test
        assert corpus.report[f"{split.name}/blank_source_lines"] == "2"
        assert corpus.report[f"{split.name}/blank_target_lines"] == "3 4"
        assert corpus.report[f"{split.name}/pairs"] == 4


@pytest.mark.parametrize("overlap", ["remove", "keep"])
def test_R37_copies_of_the_test_set_in_train_are_counted_by_class(tmp_path, overlap):
    test = [(f"The man number {i} runs.", f"Der „Mann“ Nummer {i} läuft.") for i in range(300)]
    exact = test[:100]
    near = [
        (s.upper(), " " + t.replace("„", '"').replace("“", '"').replace(" ", "  ")) for s, t in test[100:200]
    ]
    source = [(s, f"Etwas anderes, {i}.") for i, (s, _) in enumerate(test[200:])]
    own = [(f"own {i}", f"eigen {i}") for i in range(50)]
    corpus = _files(tmp_path, exact + own[:25] + near + own[25:] + source, test=test, overlap=overlap)
    counts = {kind: corpus.report[f"overlap/test/{kind}"] for kind in ("exact", "normalized", "source_only")}
    assert counts == {"exact": 100, "normalized": 100, "source_only": 100}
    assert [corpus.report[f"overlap/dev/{kind}"] for kind in counts] == [0, 0, 0]
    removed = overlap == "remove"
    assert corpus.report["train/dropped_overlap"] == (200 if removed else 0)
    assert corpus.train.src == [
        s for s, _ in (own + source if removed else exact + own[:25] + near + own[25:] + source)
    ]


def test_R37_a_test_set_cut_short_still_guards_the_whole_of_it(tmp_path):
    test = [(f"s{i}", f"t{i}") for i in range(10)]
    corpus = _files(tmp_path, [*test, ("x", "y")], test=test, test_pairs=2)
    assert (corpus.train.src, corpus.test.src) == (["x"], ["s0", "s1"])


def test_sizes_take_the_first_pairs_and_never_more_than_there_are(tmp_path):
    pairs = [(f"s{i}", f"t{i}") for i in range(9)]
    corpus = _files(tmp_path, pairs, dev=[("a", "b"), ("c", "d")], train_pairs=4, dev_pairs=1)
    assert (corpus.train.src, corpus.train.tgt, corpus.dev.src) == (
        ["s0", "s1", "s2", "s3"],
        ["t0", "t1", "t2", "t3"],
        ["a"],
    )
    with pytest.raises(UserError, match=r"data\.train_pairs=10, but that split has 9"):
        _files(tmp_path, pairs, train_pairs=10)


def test_nothing_left_to_train_on_is_an_error(tmp_path):
    with pytest.raises(UserError, match=r"data\.train .* no pair left"):
        _files(tmp_path, [("", "x"), ("t", "t")])


def test_the_digest_tells_apart_what_only_framing_tells_apart():
    def of(src, tgt, name="train"):
        return digest([Split(name, src, tgt, None)])

    assert of(["a"], ["b"]) == of(["a"], ["b"])
    texts = [
        (["ab"], ["c"]),
        (["a"], ["bc"]),
        (["a", "b"], ["c", ""]),
        (["a", ""], ["b", "c"]),
        (["c"], ["ab"]),
    ]
    digests = [of(*pair) for pair in texts] + [of(["ab"], ["c"], "dev")]
    assert len(set(digests)) == len(digests)


def test_the_digest_is_the_sha256_of_netstrings():
    expected = hashlib.sha256("5:train,1:1,3:é ,1:b,".encode()).hexdigest()
    assert digest([Split("train", ["é "], ["b"], None)]) == expected


def test_the_digest_covers_each_split(tmp_path):
    base = _files(tmp_path, [("x", "y")]).digest
    assert _files(tmp_path, [("x", "y")]).digest == base
    assert _files(tmp_path, [("x", "y")], dev=[("d", "e")]).digest != base
    assert _files(tmp_path, [("x", "y")], test=[("t", "u")]).digest != base


def test_the_grammar_comes_with_alignments_in_both_directions():
    pytest.importorskip("attnlab.data.grammar")
    sizes = {"train_pairs": 50, "dev_pairs": 5, "test_pairs": 5}
    forth = load_corpus(data_config("grammar", **sizes))
    back = load_corpus(data_config("grammar", src="de", tgt="en", **sizes))
    assert (forth.train.src, forth.train.tgt) == (back.train.tgt, back.train.src)
    for there, here in zip(forth.train.alignments, back.train.alignments, strict=True):
        assert sorted(there) == sorted((a, b) for b, a in here)
    for split in (forth.train, forth.dev, forth.test):
        for src, tgt, alignment in zip(split.src, split.tgt, split.alignments, strict=True):
            assert all(i < len(src.split()) and j < len(tgt.split()) for i, j in alignment)
    assert forth.report["train/dropped_overlap"] == 0


@pytest.mark.parametrize(
    ("changes", "sentence"), [({"src": "fr"}, "speaks en and de"), ({"dev_pairs": None}, "dev_pairs")]
)
def test_the_grammar_says_what_it_cannot_do(changes, sentence):
    pytest.importorskip("attnlab.data.grammar")
    with pytest.raises(UserError, match=sentence):
        load_corpus(data_config("grammar", **changes))


@needs_multi30k
def test_multi30k_is_what_its_authors_say():
    corpus = load_corpus(data_config("files", dir=str(MULTI30K)))
    assert [len(split) for split in (corpus.train, corpus.dev, corpus.test)] == [29_000, 1_014, 1_000]
    assert corpus.test.src[0] == "A man in an orange hat starring at something."
    assert corpus.test.tgt[0] == "Ein Mann mit einem orangefarbenen Hut, der etwas anstarrt."
