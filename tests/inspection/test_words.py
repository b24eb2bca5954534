"""Pieces to words, by hand."""

import pytest
import torch

from attnlab.inspection.words import bare, pool, word_pieces


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (["▁The", "▁cat"], [[0], [1]]),
        (["▁Ma", "tte", ",", "▁weil"], [[0, 1], [3]]),  # the comma is no word
        (["▁Matte,", "▁weil"], [[0], [1]]),  # a comma within a piece cannot be told apart
        (["▁f", "ifty", "-", "six"], [[0, 1, 3]]),
        (["▁", "<unk>", "t", "▁-", "-"], [[1, 2], [3, 4]]),  # a word of signs alone keeps them
        ([], []),
    ],
)
def test_pieces_of_each_word(pieces, words):
    assert word_pieces(pieces) == words


def test_pooling_sums_over_keys_and_takes_the_mean_over_queries():
    weights = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.3, 0.3, 0.3, 0.1], [1.0, 0.0, 0.0, 0.0]])
    pooled = pool(weights, queries=[[0, 1], [2]], keys=[[0], [1, 2]])  # key 3 is of no word
    expected = torch.tensor([[0.25, 0.2, 0.55], [0.0, 1.0, 0.0]])
    torch.testing.assert_close(pooled, expected)


def test_pooling_keeps_the_sum_of_each_row_and_leading_axes():
    weights = torch.rand(2, 3, 5, 6, generator=torch.Generator().manual_seed(0)).softmax(-1)
    pooled = pool(weights, [[0], [1, 2, 3]], [[4], [1, 2]])
    assert pooled.shape == (2, 3, 2, 3)
    torch.testing.assert_close(pooled.sum(-1), torch.ones(2, 3, 2))


def test_bare_words():
    assert [bare(word) for word in ("It,", "„Katze“", "man's", "fifty-six.", "...")] == [
        "it",
        "katze",
        "man's",
        "fifty-six",
        "",
    ]
