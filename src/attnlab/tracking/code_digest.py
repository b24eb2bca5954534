"""Which code made a run's numbers: one hash over the sources that can change them.

A commit says too much: one that mends a sentence of the docs, a table or a command's help is another commit and the
same experiment. Counted is what stands between the configuration and the numbers: text, model, training, measuring,
scoring, random streams, devices. Left out are
- config, compose, identity, rules: every value they hand over is in the run id already;
- tracking, progress, terminal, texts, errors: they store and show numbers and make none;
- study, inspection, theory and the command line: they read finished runs. theory/jacobian.py is a probe's formula and
  counts.
Comments and docstrings do not count either: correcting one is no other experiment.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import io
import tokenize
from pathlib import Path

import attnlab

COUNTED = ("data", "model", "training", "measure", "theory/jacobian.py", "run.py", "streams.py", "device.py")


def read_sources(package: Path) -> dict[str, str]:
    """Text of each counted file by its path below `package`."""
    files = [
        path for name in COUNTED for path in (sorted((package / name).rglob("*.py")) or [package / name])
    ]
    return {path.relative_to(package).as_posix(): path.read_text(encoding="utf-8") for path in files}


# Read when this module is imported, as the code itself is: a file that changes while a run trains is not its code.
_SOURCES = read_sources(Path(attnlab.__file__).parent)


@functools.cache
def code_digest() -> str:
    """The digest of this process's code, 64 hexadecimal digits."""
    return digest_of(_SOURCES)


def digest_of(sources: dict[str, str]) -> str:
    """One hash over files by name, less their comments, docstrings and blank lines."""
    whole = hashlib.sha256()
    for name, text in sorted(sources.items()):
        whole.update(f"{name}\n{bare(text)}\n\0".encode())
    return whole.hexdigest()


def bare(source: str) -> str:
    """A file's text without comments, docstrings, blank lines and spaces at the ends of lines.

    Cut from the text, not printed from the syntax tree: that would print differently in each version of Python.
    """
    rows = [line.encode() for line in source.split("\n")]  # ast counts columns in bytes
    for first, start, last, end in sorted(_not_code(source), reverse=True):
        rows[first - 1 : last] = [rows[first - 1][:start] + rows[last - 1][end:]]
    return "\n".join(row.decode().rstrip() for row in rows if row.strip())


def _not_code(source: str) -> list[tuple[int, int, int, int]]:
    """First line and column, last line and column (in bytes) of each comment and docstring."""
    spans = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            (row, column), line = token.start, token.line
            start = len(line[:column].encode())
            spans.append((row, start, row, start + len(token.string.encode())))
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            spans.append(
                (text.lineno, text.col_offset, text.end_lineno or text.lineno, text.end_col_offset or 0)
            )
    return spans
