"""Alignment error rates worked out by hand."""

import itertools

import pytest
import torch

from attnlab.inspection.alignment import (
    Agreement,
    argmax_links,
    best_agreement,
    diagonal_links,
    uniform_agreement,
)

GOLD = [(0, 0), (1, 1), (2, 1), (2, 2)]  # target word 1 has two source words


@pytest.mark.parametrize(
    ("found", "aer"),
    [
        (GOLD, 0.0),
        ([(0, 0), (1, 1), (2, 2)], 1 - 2 * 3 / 7),  # one gold link is missing
        ([(0, 0), (0, 1), (0, 2)], 1 - 2 * 1 / 7),
        ([(0, 0), (1, 1), (2, 2), (3, 3)], 1 - 2 * 3 / 8),  # and one is wrong
        ([(1, 0)], 1.0),
        ([], 1.0),
        ([(0, 0), (0, 0)], 1 - 2 * 1 / 5),  # a link counts once
    ],
)
def test_alignment_error_rate(found, aer):
    assert Agreement.of(found, GOLD).aer == pytest.approx(aer)


def test_alignment_error_rate_is_one_minus_f1():
    found = [(0, 0), (2, 2), (3, 1)]
    precision, recall = 2 / 3, 2 / 4
    assert Agreement.of(found, GOLD).aer == pytest.approx(1 - 2 * precision * recall / (precision + recall))


def test_sentences_are_summed_before_the_division():
    total = Agreement.of([(0, 0)], [(0, 0)]) + Agreement.of([(0, 1), (0, 2), (0, 3)], [(0, 1)])
    assert total.aer == pytest.approx(1 - 2 * 2 / (4 + 2))  # the mean of both would be (0 + 1/2) / 2


def test_no_link_at_all_has_no_rate():
    with pytest.raises(ValueError, match="no link"):
        _ = Agreement().aer


def test_argmax_links_leave_out_words_that_look_at_no_word():
    pooled = torch.tensor([[0.1, 0.2, 0.7], [0.5, 0.3, 0.2], [0.2, 0.5, 0.3]])
    assert argmax_links(pooled) == [(1, 0), (0, 2)]


def test_uniform_chance_is_the_mean_over_all_alignments():
    """Brute force: 3 target words, each linked to any of 3 source words."""
    rates = [
        Agreement.of(list(zip(sources, range(3), strict=True)), GOLD).aer
        for sources in itertools.product(range(3), repeat=3)
    ]
    assert uniform_agreement(GOLD, 3, 3).aer == pytest.approx(sum(rates) / len(rates))


def test_best_is_the_least_over_all_alignments():
    rates = [
        Agreement.of(list(zip(sources, range(3), strict=True)), GOLD).aer
        for sources in itertools.product(range(3), repeat=3)
    ]
    assert best_agreement(GOLD).aer == pytest.approx(min(rates))


@pytest.mark.parametrize(
    ("source", "target", "links"),
    [(3, 3, [(0, 0), (1, 1), (2, 2)]), (2, 4, [(0, 0), (0, 1), (1, 2), (1, 3)]), (4, 2, [(1, 0), (3, 1)])],
)
def test_diagonal(source, target, links):
    assert diagonal_links(source, target) == links
