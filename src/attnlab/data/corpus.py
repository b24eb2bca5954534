"""The parallel corpus of a run: three splits of sentence pairs, what was done to them, and their fingerprint.

Policies, all counted in `Corpus.report`:
- `train_pairs`, `dev_pairs`, `test_pairs` take the first so many pairs as read; asking for more than there are is an
  error, so that a sweep over sizes never holds two equal cells.
- A training pair with a blank side is dropped, both sides together.
- A training pair that also stands in dev or test is dropped (`overlap: remove`) or only counted (`overlap: keep`).
- Dev and test never shrink: a blank side there is kept and its line number reported.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from attnlab.config import DataConfig, Overlap, Source
from attnlab.data.files import Pairs, read_files
from attnlab.data.hub import read_hub
from attnlab.data.kept_grammar import kept_grammar
from attnlab.errors import UserError

Alignment = tuple[tuple[int, int], ...]

# Spaces and everything that serves as a quotation mark or apostrophe: near copies differ in these and in case.
IGNORED_IN_COPIES = re.compile("[\\s\"'`´«»‘’‚‛“”„‟‹›]+")


@dataclass(frozen=True)
class Split:
    """Sentence pairs in their order.

    `alignments[i]` holds (source word, target word), counted from 0 over the words between spaces of pair i; None
    where the corpus has no alignments.
    """

    name: str
    src: list[str]
    tgt: list[str]
    alignments: list[Alignment] | None

    def __len__(self) -> int:
        return len(self.src)

    def select(self, indices: list[int]) -> Split:
        """The pairs at `indices`, in that order."""
        alignments = None if self.alignments is None else [self.alignments[i] for i in indices]
        return Split(self.name, [self.src[i] for i in indices], [self.tgt[i] for i in indices], alignments)


@dataclass(frozen=True)
class Corpus:
    """`src`, `tgt`: language codes. `report`: counts by reason, keys `split/reason`. `digest`: sha256 of all text."""

    name: str
    src: str
    tgt: str
    train: Split
    dev: Split
    test: Split
    report: dict[str, int | str]
    digest: str


def load_corpus(config: DataConfig, cache: Path | None = None) -> Corpus:
    """Reads, limits and cleans the corpus that `config` names. Raises UserError where that cannot be done.

    The grammar's sentences are kept under `cache`; None draws them again.
    """
    splits, report = _read(config, cache)
    train = _first(splits["train"], config.train_pairs, "train")
    train = _drop_blank(train, report)
    train = _drop_copies(train, splits["dev"], splits["test"], config.overlap, report)
    dev = _first(splits["dev"], config.dev_pairs, "dev")
    test = _first(splits["test"], config.test_pairs, "test")
    for split in (dev, test):
        _report_blank(split, report)
    for split in (train, dev, test):
        if not len(split):
            raise UserError(
                f"data.{split.name} of data={config.name} has no pair left to use; one is needed."
            )
        report[f"{split.name}/pairs"] = len(split)
    return Corpus(config.name, config.src, config.tgt, train, dev, test, report, digest([train, dev, test]))


def digest(splits: list[Split]) -> str:
    """sha256 over names, sizes and texts as netstrings (Bernstein 1997): no two corpora spell the same bytes."""
    state = hashlib.sha256()
    for split in splits:
        for text in (split.name, str(len(split)), *split.src, *split.tgt):
            data = text.encode("utf-8")
            state.update(b"%d:%b," % (len(data), data))
    return state.hexdigest()


def _read(config: DataConfig, cache: Path | None) -> tuple[dict[str, Split], dict[str, int | str]]:
    report: dict[str, int | str] = {"source": config.source.value}
    match config.source:
        case Source.grammar:
            splits = _grammar(config, cache)
        case Source.files:
            stems = {"train": config.train, "dev": config.dev, "test": config.test}
            pairs = {
                name: read_files(config.dir, stem, config.src, config.tgt) for name, stem in stems.items()
            }
            splits = _splits(pairs, report)
        case Source.hub:
            pairs, report["hub/commit"] = read_hub(config)
            splits = _splits(pairs, report)
    report |= {f"{name}/read": len(split) for name, split in splits.items()}
    return splits, report


def _splits(read: dict[str, Pairs], report: dict[str, int | str]) -> dict[str, Split]:
    for name, pairs in read.items():
        report |= {f"{name}/{reason}": count for reason, count in pairs.counts.items()}
    return {name: Split(name, pairs.src, pairs.tgt, None) for name, pairs in read.items()}


def _grammar(config: DataConfig, cache: Path | None) -> dict[str, Split]:
    if {config.src, config.tgt} != {"en", "de"}:
        raise UserError(f"data.src={config.src} data.tgt={config.tgt}: the grammar speaks en and de.")
    sizes = {"train": config.train_pairs, "dev": config.dev_pairs, "test": config.test_pairs}
    for name, size in sizes.items():
        if size is None:
            raise UserError(f"data.{name}_pairs=null; the grammar needs a number of pairs to make.")
    kept = kept_grammar(config.corpus_seed, {name: int(size or 0) for name, size in sizes.items()}, cache)
    splits = {}
    for name, pairs in kept.items():
        english, german = [src for src, _, _ in pairs], [tgt for _, tgt, _ in pairs]
        alignments = [alignment for _, _, alignment in pairs]
        if config.src == "en":
            splits[name] = Split(name, english, german, alignments)
        else:
            turned = [tuple(sorted((there, here) for here, there in links)) for links in alignments]
            splits[name] = Split(name, german, english, turned)
    return splits


def _first(split: Split, limit: int | None, name: str) -> Split:
    if limit is None:
        return split
    if limit > len(split):
        raise UserError(
            f"data.{name}_pairs={limit}, but that split has {len(split)} pairs; take at most those."
        )
    return split.select(list(range(limit)))


def _drop_blank(split: Split, report: dict[str, int | str]) -> Split:
    blank_src = {i for i, text in enumerate(split.src) if not text.strip()}
    blank_tgt = {i for i, text in enumerate(split.tgt) if not text.strip()}
    report[f"{split.name}/dropped_blank_source"] = len(blank_src - blank_tgt)
    report[f"{split.name}/dropped_blank_target"] = len(blank_tgt - blank_src)
    report[f"{split.name}/dropped_blank_both"] = len(blank_src & blank_tgt)
    return split.select([i for i in range(len(split)) if i not in blank_src and i not in blank_tgt])


def _report_blank(split: Split, report: dict[str, int | str]) -> None:
    for side, texts in (("source", split.src), ("target", split.tgt)):
        lines = [str(number) for number, text in enumerate(texts, start=1) if not text.strip()]
        report[f"{split.name}/blank_{side}"] = len(lines)
        if lines:
            report[f"{split.name}/blank_{side}_lines"] = " ".join(lines)


def _drop_copies(
    train: Split, dev: Split, test: Split, policy: Overlap, report: dict[str, int | str]
) -> Split:
    """Counts training pairs that stand in dev or test, each in its closest class: `exact`, `normalized` (the same but
    for case, space and quotation marks), `source_only` (another translation of such a source). The first two are
    dropped under `Overlap.remove`; the third is kept, since short sentences recur in honest text.

    The whole of dev and test counts, also where `test_pairs` takes only its beginning: looking at fewer test
    sentences must not change what is trained on.
    """
    plain = [_plain_pair(src, tgt) for src, tgt in zip(train.src, train.tgt, strict=True)]
    copies: set[int] = set()
    for held_out in (dev, test):
        pairs = list(zip(held_out.src, held_out.tgt, strict=True))
        exact, near = set(pairs), {_plain_pair(*pair) for pair in pairs}
        sources = {source for source, _ in near if source}
        counts = dict.fromkeys(("exact", "normalized", "source_only"), 0)
        for i, pair in enumerate(zip(train.src, train.tgt, strict=True)):
            if pair in exact:
                kind = "exact"
            elif plain[i][0] in sources:
                kind = "normalized" if plain[i] in near else "source_only"
            else:
                continue
            counts[kind] += 1
            if kind != "source_only":
                copies.add(i)
        report |= {f"overlap/{held_out.name}/{kind}": count for kind, count in counts.items()}
    dropped = copies if policy is Overlap.remove else set()
    report["train/dropped_overlap"] = len(dropped)
    return train.select([i for i in range(len(train)) if i not in dropped])


def _plain_pair(src: str, tgt: str) -> tuple[str, str]:
    return _plain(src), _plain(tgt)


def _plain(text: str) -> str:
    """What is left of a sentence when case, spaces, quotation marks and ways to compose a letter do not count."""
    return IGNORED_IN_COPIES.sub("", unicodedata.normalize("NFC", text)).casefold()
