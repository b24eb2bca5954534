"""The Hub through its real client and a stand-in server: what is read, kept, read again offline, and refused."""

import gzip
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hub_server import COMMIT, HubServer
from settings import ROOT, data_config, write_split

from attnlab.data.corpus import load_corpus
from attnlab.data.hub import _deal, reaches
from attnlab.errors import UserError

PIN = data_config("multi30k").revision
LOAD = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from settings import data_config
from attnlab.data import hub
from attnlab.data.corpus import load_corpus
from attnlab.errors import UserError
answers = []
for home, kept_rows, name, changes in json.loads(sys.argv[2]):
    os.environ["HF_HOME"], hub.KEPT_ROWS = home, kept_rows
    try:
        corpus = load_corpus(data_config(name, **changes))
        splits = {split.name: list(zip(split.src, split.tgt)) for split in (corpus.train, corpus.dev, corpus.test)}
        answers.append({"digest": corpus.digest, "report": corpus.report, **splits})
    except UserError as error:
        answers.append(str(error))
print(json.dumps(answers))
"""


def _load(endpoint: str, wanted: list[tuple[Path, int, str, dict]]) -> list:
    """What `load_corpus` gives for each (HF_HOME, KEPT_ROWS, config, changes).

    In a process of its own, since the client reads its settings from the environment once.
    """
    pytest.importorskip("datasets")
    env = {
        **os.environ,
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(wanted[0][0]),
        "PYTHONPATH": str(ROOT / "src"),
    }
    env |= {
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_OFFLINE": "0",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
    command = [sys.executable, "-c", LOAD, str(Path(__file__).parent), json.dumps(wanted, default=str)]
    run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def _jsonl(rows: list[dict]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _translations(start: int, count: int) -> list[dict[str, str]]:
    return [{"de": f"Satz {i}", "en": f"sentence {i}"} for i in range(start, start + count)]


def _parquet(rows: list[dict[str, str]]) -> bytes:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    content = io.BytesIO()
    parquet.write_table(arrow.table({"translation": arrow.array(rows)}), content, row_group_size=8)
    return content.getvalue()


CARD = """---
configs:
- config_name: de-en
  data_files:
"""
SPLITS = {"train": _translations(0, 40), "validation": _translations(100, 6), "test": _translations(200, 5)}
CAPTIONS = {
    "train": [{"en": f"a {i}", "de": f"ein {i}"} for i in range(30)]
    + [{"en": "two\nlines", "de": "b"}, {"en": None, "de": "c"}],
    "val": [{"en": f"v {i}", "de": f"w {i}"} for i in range(4)],
    "test": [{"en": f"t {i}", "de": f"u {i}"} for i in range(3)],
}


@pytest.fixture(scope="module")
def hub():
    """Four data sets: captions with a column per language, a set with three splits, one with train alone, a script."""
    card = (
        CARD + "".join(f"  - split: {split}\n    path: de-en/{split}.parquet\n" for split in SPLITS) + "---\n"
    )
    books = CARD + "  - split: train\n    path: de-en/train.parquet\n---\n"
    repositories = {
        "bentrevett/multi30k": {f"{name}.jsonl": _jsonl(rows) for name, rows in CAPTIONS.items()},
        "made/wmt": {f"de-en/{split}.parquet": _parquet(rows) for split, rows in SPLITS.items()},
        "made/books": {"de-en/train.parquet": _parquet(SPLITS["train"]), "README.md": books.encode()},
        "made/script": {"script.py": b"import datasets", "README.md": b""},
    }
    repositories["made/wmt"]["README.md"] = card.encode()
    with HubServer(repositories, revisions=(COMMIT, PIN, "main")) as server:
        yield server


WMT = ("hub", {"repository": "made/wmt", "subset": "de-en"})
BOOKS = ("opus_books", {"repository": "made/books", "revision": COMMIT, "dev_pairs": 5, "test_pairs": 7})


REFUSED = [
    (("hub", {"repository": "made/script"}), "made/script is a loading script"),
    (("hub", {"repository": "made/nothing"}), "made/nothing is not on the Hub"),
    (("hub", {**WMT[1], "revision": "f" * 40}), "data.revision is no revision"),
    (
        ("hub", {**WMT[1], "dev": "dev"}),
        "name splits of made/wmt: Bad split: dev. Available splits: ['train', 'validation', 'test']",
    ),
    (("hub", {"repository": "made/wmt", "subset": "fr-en"}), "data.subset=fr-en is no subset of made/wmt"),
    (
        ("hub", {**WMT[1], "src": "fr"}),
        "made/wmt has no texts in de and fr; its languages or columns are de, en",
    ),
    (("hub", {**WMT[1], "train_pairs": 41}), "data.train_pairs=41, but that split has 40 pairs"),
    (
        ("opus_books", {**BOOKS[1], "dev_pairs": 40, "test_pairs": 10}),
        "data.dev_pairs=40, but that split has 30 pairs",
    ),
    (("hub", {}), "data.repository is not set"),
    (("hub", {**WMT[1], "revision": None}), "data.revision is not set"),
]
SUBSETS = [7, 12, 12]


@pytest.fixture(scope="module")
def online(hub, tmp_path_factory):
    """One process that reads three sets, three subsets of one with nothing kept beyond them, and what it must refuse:
    (HF_HOME, HF_HOME of the subsets, the three answers, those of the subsets, the refusals)."""
    home, bare = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("bare")
    sets = [(home, 50_000, *wanted) for wanted in (("multi30k", {}), WMT, BOOKS)]
    subsets = [(bare, 1, WMT[0], WMT[1] | {"train_pairs": count}) for count in SUBSETS]
    answers = _load(hub.url, [*sets, *subsets, *((home, 50_000, *wanted) for wanted, _ in REFUSED)])
    return home, bare, answers[:3], answers[3:6], answers[6:]


@pytest.fixture
def prepared(online):
    """(HF_HOME, the answers of the three sets that were read into it)."""
    return online[0], online[2]


def test_R59_the_default_set_loads_at_its_pinned_commit_and_equals_the_same_files(hub, prepared, tmp_path):
    _, (answer, _, _) = prepared
    asked = [request for request in hub.requests if "bentrevett/multi30k" in request]
    assert asked
    assert all(PIN in request for request in asked)
    for stem, name in (("train", "train"), ("val", "val"), ("test_2016_flickr", "test")):
        rows = [
            {code: (text or "").replace("\n", " ") for code, text in row.items()} for row in CAPTIONS[name]
        ]
        write_split(tmp_path, stem, [row["en"] for row in rows], [row["de"] for row in rows])
    local = load_corpus(data_config("files", dir=str(tmp_path)))
    assert answer["digest"] == local.digest
    assert answer["report"]["hub/commit"] == PIN
    assert answer["report"]["train/read"] == 32
    assert answer["report"]["train/line_breaks_inside"] == 1
    assert answer["report"]["train/dropped_blank_source"] == 1


def test_a_translation_column_gives_both_languages_and_a_branch_its_commit(prepared):
    _, (_, answer, _) = prepared
    for split, name in (("train", "train"), ("dev", "validation"), ("test", "test")):
        assert answer[split] == [[row["en"], row["de"]] for row in SPLITS[name]]
    assert answer["report"]["hub/commit"] == COMMIT


def test_a_set_of_train_alone_is_dealt_out(prepared):
    _, (_, _, answer) = prepared
    assert [len(answer[split]) for split in ("train", "dev", "test")] == [28, 5, 7]
    everything = sorted(pair for split in ("train", "dev", "test") for pair in answer[split])
    assert everything == sorted([row["en"], row["de"]] for row in SPLITS["train"])


def test_dealing_depends_on_the_pairs_alone():
    rows = [(f"s{i}", f"t{i}") for i in range(50)] + [("s7", "t7"), ("", "x"), ("y", " ")]
    dealt = _deal(rows, {"test": 20, "dev": 10})
    turned = _deal(rows[::-1], {"test": 20, "dev": 10})
    for role, size in (("test", 20), ("dev", 10)):
        assert sorted(dealt[role]) == sorted(turned[role])
        assert len(set(dealt[role])) == size
        assert all(src.strip() and tgt.strip() for src, tgt in dealt[role])
        assert dealt[role] == [row for row in rows[:50] if row in dealt[role]]  # in file order
    held_out = {*dealt["test"], *dealt["dev"]}
    assert len(held_out) == 30
    assert dealt["train"] == [row for i, row in enumerate(rows) if i >= 50 or row not in held_out]
    with pytest.raises(UserError, match=r"data\.dev_pairs must be a number"):
        _deal(rows, {"test": 3, "dev": None})


def test_R60_what_was_read_once_loads_offline_in_any_subset_without_a_request(hub, prepared, monkeypatch):
    home, answers = prepared
    asked = len(hub.requests)
    monkeypatch.setenv("HF_HOME", str(home))
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    for flag in ("0", "1"):
        monkeypatch.setenv("HF_HUB_OFFLINE", flag)
        for (name, changes), answer in zip((("multi30k", {}), WMT, BOOKS), answers, strict=True):
            assert load_corpus(data_config(name, **changes)).digest == answer["digest"]
        part = load_corpus(data_config("multi30k", train_pairs=3, src="de", tgt="en"))
        assert list(zip(part.train.tgt, part.train.src, strict=True)) == [
            tuple(pair) for pair in answers[0]["train"][:3]
        ]
        assert load_corpus(data_config(WMT[0], **WMT[1], dev="test", test="validation")).dev.src == [
            pair[0] for pair in answers[1]["test"]
        ]
    assert len(hub.requests) == asked


def test_R60_the_miss_message_says_how_to_prepare(prepared, monkeypatch):
    home, _ = prepared
    monkeypatch.setenv("HF_HOME", str(home))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(
        UserError, match=r"HF_HUB_OFFLINE is set.*run the same command once.*data=files data\.dir="
    ):
        load_corpus(data_config("opus_100"))


def test_R61_a_damaged_copy_is_a_miss_and_not_a_crash(prepared, monkeypatch, tmp_path):
    home, _ = prepared
    shutil.copytree(home / "attnlab", tmp_path / "attnlab")
    (kept,) = (tmp_path / "attnlab").glob("bentrevett--multi30k/*/default/train.*.gz")
    kept.write_bytes(kept.read_bytes()[:-20])
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match="HF_HUB_OFFLINE is set"):
        load_corpus(data_config("multi30k"))


def test_R60_a_part_that_was_kept_serves_smaller_ones_and_no_larger(online, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(online[1]))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    corpus = load_corpus(data_config(WMT[0], **WMT[1], train_pairs=5))
    assert corpus.train.src == [row["en"] for row in SPLITS["train"][:5]]
    for more in (max(SUBSETS) + 1, None):
        with pytest.raises(UserError, match="holds no copy of this part"):
            load_corpus(data_config(WMT[0], **WMT[1], train_pairs=more))


def test_R64_a_streamed_subset_is_the_beginning_of_the_whole(online):
    _, bare, _, (first, second, again), _ = online
    whole = [[row["en"], row["de"]] for row in SPLITS["train"]]
    assert first["train"] == whole[:7]
    assert second["train"] == again["train"] == whole[:12]
    (kept,) = (bare / "attnlab").glob("made--wmt/*/de-en/train.*.gz")
    assert len(gzip.decompress(kept.read_bytes()).splitlines()) == 1 + 12


def test_R59_what_cannot_be_read_is_one_sentence(online):
    for (_, sentence), answer in zip(REFUSED, online[-1], strict=True):
        assert isinstance(answer, str)
        assert sentence in answer
        assert "\n" not in answer


def test_without_the_package_the_sentence_says_how_to_get_it(hub, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UserError, match="pip install 'attnlab\\[hub\\]', or use data=files"):
        load_corpus(data_config("multi30k"))


def test_R61_a_cache_that_cannot_be_written_is_one_sentence_at_once(hub, tmp_path):
    (tmp_path / "file").write_text("in the way")
    start = time.monotonic()
    (answer,) = _load(hub.url, [(tmp_path / "file" / "home", 50_000, "multi30k", {})])
    assert "HF_HOME cannot be written" in answer
    assert time.monotonic() - start < 15


@pytest.fixture
def refusing():
    """A port of this machine on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def silent():
    """A port whose queue of new connections is full: the next one gets no answer, as behind a firewall."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        for one in waiting:
            one.close()


@pytest.mark.parametrize("kind", ["refusing", "silent"])
def test_an_unreachable_hub_fails_within_two_seconds_and_says_how_to_go_on(
    kind, request, monkeypatch, tmp_path
):
    monkeypatch.setenv("HF_ENDPOINT", request.getfixturevalue(kind))
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    start = time.monotonic()
    with pytest.raises(UserError, match=r"does not answer.*data=files data\.dir=<folder>") as caught:
        load_corpus(data_config("multi30k"))
    assert time.monotonic() - start < 2.0
    assert "\n" not in str(caught.value)


def test_a_name_that_is_looked_up_slowly_is_not_waited_for(hub, monkeypatch):
    look_up = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: time.sleep(3) or look_up(*a, **k))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    start = time.monotonic()
    assert not reaches(hub.url, 0.2)
    assert time.monotonic() - start < 1.0


def test_a_proxy_is_what_has_to_be_reached(hub, refusing, monkeypatch):
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    assert reaches(hub.url, 1.5)
    assert not reaches(refusing, 1.5)
    monkeypatch.setenv("http_proxy", hub.url)
    assert reaches("http://name.invalid", 1.5)
    assert reaches(refusing, 1.5)
    monkeypatch.setenv("http_proxy", refusing.removeprefix("http://"))
    assert not reaches("http://name.invalid", 1.5)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert reaches(hub.url, 1.5)
