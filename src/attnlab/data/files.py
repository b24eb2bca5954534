"""Parallel text from files, read strictly: what is wrong stops with file and line, what is mended is counted.

A split named `train` of en and de is one of
    train.en + train.de    one sentence a line, the same number of lines on both sides
    train.tsv              two columns and no quoting (a quotation mark is text): source, tab, target. A first row
                           that holds exactly the two language codes is a header, and sets the order of the columns
    train.jsonl            one object a line, its keys the language codes (others are ignored)
each also with .gz at its end. Two forms at once are an error, since nobody could tell which was read.

Lines end at line feeds alone, never at the other characters that `str.splitlines` takes for line ends (U+2028,
U+0085, vertical tab, ...): they stand in real corpora, and one of them on one side would shift all pairs below.
Text is kept as it is, control characters too (lines that hold one are counted); the tokenizer says what it does with
them. Mended and counted: a carriage return before the line feed, a byte order mark, a line break inside a sentence (a
carriage return elsewhere in a line, a line feed in a JSON string), which becomes a space.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from attnlab.errors import UserError

BYTE_ORDER_MARK = "\ufeff".encode()
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
LINE_BREAK = re.compile("\r\n|\r|\n")
Sides = tuple[list[str], list[str]]  # source, target
MENDED = ("carriage_returns", "byte_order_marks", "line_breaks_inside", "control_characters")


@dataclass(frozen=True)
class Pairs:
    """Sentence pairs as read, none left out. `counts`: what was mended, by the names in MENDED (unit: lines)."""

    src: list[str]
    tgt: list[str]
    counts: dict[str, int]

    def __len__(self) -> int:
        return len(self.src)


def read_files(folder: str | None, stem: str, src: str, tgt: str) -> Pairs:
    """The pairs of the split `stem` in `folder`, in file order, for the language codes `src` and `tgt`.

    Raises UserError: no such file, two forms at once, sides of different length, text that is not UTF-8, a row that
    has not its two texts.
    """
    if folder is None:
        raise UserError(
            "data.dir is not set; give the folder that holds the parallel text, e.g. data.dir=path/to/multi30k."
        )
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise UserError(f"data.dir={folder} is not a folder; give the folder that holds the parallel text.")
    counts = dict.fromkeys(MENDED, 0)
    sources, targets = _read(_find(root, stem, src, tgt), src, tgt, counts)
    for side in (sources, targets):
        counts["control_characters"] += sum(1 for line in side if CONTROL.search(line))
    return Pairs(sources, targets, counts)


def one_line(text: str, counts: dict[str, int]) -> str:
    """`text` with each line break in it turned into a space and counted: a sentence is one line everywhere below."""
    line, breaks = LINE_BREAK.subn(" ", text)
    counts["line_breaks_inside"] += breaks > 0
    return line


def _find(root: Path, stem: str, src: str, tgt: str) -> list[Path]:
    """The one file, or the two (source, target), of this split."""
    forms = []
    for endings in ((src, tgt), ("tsv",), ("jsonl",)):
        found = [_present(root, f"{stem}.{ending}") for ending in endings]
        if any(found):
            forms.append((endings, found))
    names = [path.name for _, found in forms for paths in found for path in paths]
    if not forms:
        raise UserError(
            f"data.dir={root} has no split {stem!r}: expected {stem}.{src} and {stem}.{tgt}, or {stem}.tsv, "
            f"or {stem}.jsonl, each plain or with .gz; other names by data.train, data.dev and data.test."
        )
    endings, found = forms[0]
    for ending, paths in zip(endings, found, strict=True):
        if not paths:
            raise UserError(
                f"data.dir={root} has {', '.join(names)} but no {stem}.{ending}; give both sides."
            )
    if len(forms) > 1 or any(len(paths) > 1 for paths in found):
        raise UserError(
            f"data.dir={root} has the split {stem!r} more than once ({', '.join(names)}); keep one form of it."
        )
    return [paths[0] for paths in found]


def _present(root: Path, name: str) -> list[Path]:
    return [path for path in (root / name, root / f"{name}.gz") if path.is_file()]


def _read(paths: list[Path], src: str, tgt: str, counts: dict[str, int]) -> Sides:
    lines = [_lines(path, counts) for path in paths]
    if len(paths) == 2:
        source, target = paths
        sources, targets = ([one_line(line, counts) for line in side] for side in lines)
        if len(sources) != len(targets):
            raise UserError(
                f"{source} has {len(sources)} lines and {target.name} has {len(targets)}; a parallel text has "
                "as many on both sides."
            )
        return sources, targets
    if paths[0].name.removesuffix(".gz").endswith(".tsv"):
        return _tsv(paths[0], lines[0], src, tgt, counts)
    return _jsonl(paths[0], lines[0], src, tgt, counts)


def _lines(path: Path, counts: dict[str, int]) -> list[str]:
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} cannot be read ({error}).") from error
    if content.startswith(BYTE_ORDER_MARK):
        content = content.removeprefix(BYTE_ORDER_MARK)
        counts["byte_order_marks"] += 1
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}, line {number}: not UTF-8 ({error.reason}); convert the file.") from error
    lines = text.split("\n")
    if lines[-1] == "":  # the end of the last line, not a line
        lines.pop()
    counts["carriage_returns"] += sum(line.endswith("\r") for line in lines)
    return [line.removesuffix("\r") for line in lines]


def _tsv(path: Path, lines: list[str], src: str, tgt: str, counts: dict[str, int]) -> Sides:
    rows = [line.split("\t") for line in lines]
    for number, row in enumerate(rows, start=1):
        if len(row) != 2:
            raise UserError(f"{path}, line {number}: {len(row)} columns; a row is source, tab, target.")
    header = rows[0] if rows and sorted(rows[0]) == sorted((src, tgt)) else None
    texts = rows[header is not None :]
    first, second = ([one_line(row[column], counts) for row in texts] for column in (0, 1))
    return (second, first) if header == [tgt, src] else (first, second)


def _jsonl(path: Path, lines: list[str], src: str, tgt: str, counts: dict[str, int]) -> Sides:
    sides: Sides = ([], [])
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:  # a number of 5,000 digits, brackets 5,000 deep
            raise UserError(
                f"{path}, line {number}: not JSON ({str(error).partition(': line')[0]})."
            ) from error
        for side, code in zip(sides, (src, tgt), strict=True):
            text = row[code] if isinstance(row, dict) and code in row else None
            if not isinstance(text, str) or not _encodable(text):
                raise UserError(
                    f"{path}, line {number}: no text under the key {code!r}; a line is an object such as "
                    f'{{"{src}": "...", "{tgt}": "..."}}.'
                )
            side.append(one_line(text, counts))
    return sides


def _encodable(text: str) -> bool:
    """False for half a surrogate pair, which JSON can spell and UTF-8 cannot hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
