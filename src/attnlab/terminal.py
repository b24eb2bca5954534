"""Text on a terminal is data: what a name, a setting or a translation holds must not move a cursor or hide a line."""

from __future__ import annotations

import re
import sys
from typing import TextIO

# C0 and C1 controls, line and paragraph separators, the marks that reorder what is shown (Boucher and Anderson 2021), and
# halves of characters, which stand for bytes of an argument that are no UTF-8 and cannot be printed.
_ACTING = "\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
CONTROL = re.compile(f"[{_ACTING}]")
_HIDDEN = re.compile(f"[{_ACTING}]".replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))  # all but tab and line feed


def printable(text: str) -> str:
    r"""`text` with each character that a terminal acts on spelled out as \u001b, but for tabs and line feeds.

    The spelling is JSON's, so that JSON stays what it was.
    """
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """`printable`, and its tabs and line feeds spelled out too: for a cell or a line among others."""
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def short(text: str, most: int = 160) -> str:
    """`text` as one line to quote in a sentence, or its beginning and end where it is longer than `most` characters."""
    text = one_line(text)
    return text if len(text) <= most else f"{text[: most - 25]} ... {text[-20:]}"


def show(text: object, file: TextIO | None = None, end: str = "\n") -> None:
    """What `print` does, to stdout or `file`, in characters that can only be read."""
    print(printable(str(text)), end=end, file=sys.stdout if file is None else file, flush=True)
