"""One SentencePiece vocabulary for both languages, trained on the training split alone.

Joint, so that embeddings can be tied and names copied. Ids are fixed: 0 padding, 1 unknown, 2 beginning, 3 end.

Which characters survive. Text is not normalised (`identity`) and every character of the training text has a piece
(coverage 1.0), so decode(encode(x)) is x for a text of known characters but for: runs of spaces become one, those at
the ends go, and three characters are read as a space, NUL, U+2581 (SentencePiece's own mark of a word boundary) and
U+2585 (its mark of the unknown). A character never seen in training is one UNK: `Tokenizer.decode` shows U+2047 for
it. Markup that looks like a special piece, "</s>" or "<pad>", is ordinary text.
"""

from __future__ import annotations

import hashlib
import io
import re
import struct
from pathlib import Path
from typing import Any

import sentencepiece

from attnlab.config import TokenizerConfig
from attnlab.data.cache import SEAL, make_once, sealed, whole
from attnlab.data.corpus import Corpus, digest
from attnlab.errors import UserError

PAD, UNK, BOS, EOS = 0, 1, 2, 3

# SentencePiece cuts every piece that is named in the training text out of it, so a corpus with "</s>" in it would
# lose "<", "/" and ">". A space inside the name makes it unspellable: in the text every space is U+2581 by then.
PIECES: dict[str, Any] = {
    "pad_piece": "<pad> ",
    "unk_piece": "<unk> ",
    "bos_piece": "<s> ",
    "eos_piece": "</s> ",
}
READ_AS_SPACE = {"\0": " ", "\u2581": " ", "\u2585": " "}

# Longer lines are left out of the training of the vocabulary, and counted: unigram fails (`isfinite(score)`) on words
# of some ten thousand letters. They are still encoded, and `max_pieces` decides about them.
LONGEST_LINE = 16_384  # bytes of UTF-8
LOCK_SECONDS = 600.0
UNKNOWN_SURFACE = "\u2047"


class Tokenizer:
    """Text to ids and back.

    Attributes: `model`, the SentencePiece file's bytes; `vocab_size`; `digest`, sha256 over pieces, scores and their
    order, which is its identity (the bytes of the model also hold training options, such as thread counts);
    `skipped_lines`, how many training lines were too long to train on.
    """

    def __init__(self, model: bytes, skipped_lines: int = 0) -> None:
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.model = model
        self.vocab_size: int = self._processor.get_piece_size()
        self.digest = _digest(self._processor)
        self.skipped_lines = skipped_lines

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Ids of each text, without BOS and EOS. Never PAD, BOS or EOS, whatever the text says."""
        table = str.maketrans(READ_AS_SPACE)
        return self._processor.encode([text.translate(table) for text in texts], out_type=int, num_threads=1)

    def decode(self, ids: list[list[int]]) -> list[str]:
        """Text of each sequence up to its first EOS; PAD and BOS are dropped."""
        cut = [sequence[: sequence.index(EOS)] if EOS in sequence else sequence for sequence in ids]
        return self._processor.decode([[i for i in sequence if i not in (PAD, BOS)] for sequence in cut])

    def pieces(self, ids: list[int]) -> list[str]:
        """The written form of each id; U+2581 stands for a space before a word."""
        return [self._processor.id_to_piece(i).removesuffix(" ") for i in ids]


def prepare_tokenizer(corpus: Corpus, config: TokenizerConfig, cache: Path) -> Tokenizer:
    """The tokenizer of this corpus, from `cache` or trained now and kept there.

    Runs that start together train it once. The name of the file is made of all that decides its content: training
    text, kind, size, library version and the options in this file. Raises UserError where the text does not allow
    such a vocabulary.
    """
    lines = [*corpus.train.src, *corpus.train.tgt]
    usable = [line for line in lines if len(line.encode("utf-8")) <= LONGEST_LINE]
    if not usable:
        raise UserError(
            f"data.train: each of its {len(lines)} lines is longer than {LONGEST_LINE} bytes; a vocabulary needs "
            "shorter lines, split the text into sentences."
        )
    options = f"{sentencepiece.__version__} {PIECES} {LONGEST_LINE}"
    key = hashlib.sha256(f"{digest([corpus.train])} {options}".encode()).hexdigest()
    path = cache / "tokenizer" / f"{config.kind.value}-{config.vocab_size}-{key[:16]}"
    kept = make_once(path, lambda: sealed(train_model(usable, config)), whole, LOCK_SECONDS)
    return Tokenizer(kept[SEAL:], skipped_lines=len(lines) - len(usable))


def train_model(lines: list[str], config: TokenizerConfig) -> bytes:
    """Trains on `lines`; the bytes of a SentencePiece model. The same lines give the same bytes."""
    table = str.maketrans(READ_AS_SPACE)
    lines = [line.translate(table) for line in lines]
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            model_type=config.kind.value,
            vocab_size=config.vocab_size,
            character_coverage=1.0,
            normalization_rule_name="identity",
            max_sentence_length=LONGEST_LINE,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            unk_surface=UNKNOWN_SURFACE,
            num_threads=1,  # the pieces do not depend on it, the bytes of the model do
            minloglevel=2,  # errors alone; they come back as exceptions
            **PIECES,
        )
    except RuntimeError as error:
        raise _sentence(str(error), lines, config) from error
    return model.getvalue()


def _sentence(message: str, lines: list[str], config: TokenizerConfig) -> UserError:
    """SentencePiece's two complaints about the size, with the sizes that this text allows; else what it says."""
    got = f"data.tokenizer.vocab_size={config.vocab_size}"
    needed = len({"\u2581", *"".join(lines)} - {" "}) + len(
        PIECES
    )  # a piece per character, and the special ones
    if "required_chars" in message:
        return UserError(
            f"{got} is too small: the training text has {needed - len(PIECES)} different characters and each needs a "
            f"piece, so {needed} or more are allowed."
        )
    if found := re.search(r"Please set it to a value <= (\d+)", message):
        return UserError(
            f"{got} is too large for data.tokenizer.kind={config.kind.value} on this training text, which allows "
            f"{needed} to {found[1]}."
        )
    return UserError(f"data.tokenizer: SentencePiece cannot train on this text ({message}).")


def _digest(processor: sentencepiece.SentencePieceProcessor) -> str:
    state = hashlib.sha256()
    for i in range(processor.get_piece_size()):
        piece = processor.id_to_piece(i).encode("utf-8")
        state.update(struct.pack("<If", len(piece), processor.get_score(i)))
        state.update(piece)
    return state.hexdigest()
