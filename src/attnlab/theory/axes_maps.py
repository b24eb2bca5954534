"""Where each number lands when heads are split or merged without the transpose, and which tokens then see which.

Index algebra only, from 0: n tokens, h heads. A token vector is h pieces of d_k numbers; chunk t of the flat
memory is piece t mod h of token t // h.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attnlab.config import Axes


def split_source(head: int, row: int, n: int, heads: int, axes: Axes) -> tuple[int, int]:
    """(token, piece) that stands in row `row` of head `head` after splitting.

    Right: token `row`, piece `head`. view(h, n, d_k) without the transpose reads chunk t = head n + row of the flat
    memory: token t // h, piece t mod h.
    """
    match axes:
        case Axes.heads_first:
            return row, head
        case Axes.no_transpose:
            return divmod(head * n + row, heads)


def merge_source(token: int, piece: int, n: int, heads: int, axes: Axes) -> tuple[int, int]:
    """(head, row) that fills piece `piece` of token `token` after merging; the inverse map of `split_source`.

    Right: head `piece`, row `token`. reshape(n, h d_k) without the transpose reads chunk t = token h + piece of the
    flat memory, whose rows are (head, row): head t // n, row t mod n. So token i receives rows i h ... i h + h - 1
    (mod n) of head i h // n onwards.
    """
    match axes:
        case Axes.heads_first:
            return piece, token
        case Axes.no_transpose:
            return divmod(token * heads + piece, n)


def visible(n: int, heads: int, split: Axes, merge: Axes, causal: bool) -> Tensor:
    """[n,n] bool: output i of one attention block depends on input j, by index algebra alone.

    Output i is h pieces, each a row of some head; a row r of a head reads rows r' <= r (all rows when not causal);
    each row is a piece of some token. The query's own row is among them.
    """
    sees = torch.zeros(n, n, dtype=torch.bool)
    for i in range(n):
        for piece in range(heads):
            head, row = merge_source(i, piece, n, heads, merge)
            for other in range(row + 1 if causal else n):
                sees[i, split_source(head, other, n, heads, split)[0]] = True
    return sees


def future_cells(sees: Tensor) -> int:
    """How many of the n(n-1)/2 cells above the diagonal are visible: 0 for a model that keeps the future hidden."""
    return int(sees.triu(1).sum())


def past_cells(sees: Tensor) -> int:
    """How many of the n(n+1)/2 cells on and below the diagonal are visible."""
    return int(sees.tril().sum())


def next_tokens_visible(sees: Tensor) -> int:
    """At how many of the n - 1 positions the very next token, the one to predict, is visible."""
    return int(sees.diagonal(1).sum())
