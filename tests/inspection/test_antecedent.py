"""Rows of `it` made by hand."""

import random

import pytest
import torch

from attnlab.inspection.antecedent import Antecedents, Row, is_content, row_of

PIECES = ["▁The", "▁c", "at", "▁saw", "▁the", "▁dog", ",", "▁and", "▁it", "▁slept", "."]
WORDS = ["The", "cat", "saw", "the", "dog,", "and", "it", "slept."]
IT, CAT, DOG = 6, 1, 4
KEYS = len(PIECES) + 1  # and </s>


def looking(row, heads=1):
    """Weights [1,heads,12,12] in which piece 8, `it`, has this row and all else is uniform."""
    weights = torch.full((1, heads, KEYS, KEYS), 1 / KEYS)
    weights[0, :, PIECES.index("▁it")] = torch.tensor(row)
    return weights


#            The   c    at   saw  the  dog  ,    and  it   slept .   </s>
ON_CAT = [0.00, 0.12, 0.13, 0.05, 0.0, 0.20, 0.0, 0.1, 0.3, 0.05, 0.0, 0.05]


def test_pieces_of_the_antecedent_are_added_and_it_does_not_count_itself():
    row = row_of(looking(ON_CAT), PIECES, WORDS, IT, CAT)
    assert row.looked.tolist() == [[True]]
    torch.testing.assert_close(row.weight, torch.tensor([[0.25]]))


def test_another_content_word_with_more_weight_is_a_miss():
    assert row_of(looking(ON_CAT), PIECES, WORDS, IT, DOG).looked.tolist() == [[False]]


def test_function_words_punctuation_and_the_end_do_not_compete():
    parked = [0.1, 0.01, 0.01, 0.0, 0.2, 0.0, 0.2, 0.18, 0.1, 0.0, 0.1, 0.1]
    assert row_of(looking(parked), PIECES, WORDS, IT, CAT).looked.tolist() == [[True]]


def test_candidates_are_the_content_words_and_uniform_weights_give_uniform_chance():
    row = row_of(torch.full((2, 3, KEYS, KEYS), 1 / KEYS), PIECES, WORDS, IT, CAT)
    assert row.candidates == 4  # cat, saw, dog, slept
    assert row.looked.shape == (2, 3)
    torch.testing.assert_close(row.weight, torch.full((2, 3), row.uniform))
    assert row.uniform == pytest.approx(2 / 12)


def test_pieces_of_another_text_are_refused():
    with pytest.raises(ValueError, match="words"):
        row_of(looking(ON_CAT), PIECES, WORDS[:-1], IT, CAT)


def test_chance_and_its_spread_against_draws():
    """A head that looks at a content word at random, in sentences of 2, 5 and 5 of them."""
    candidates = [2, 5, 5]
    rows = [Row(torch.ones(1, 1).bool(), torch.zeros(1, 1), n, 0.1) for n in candidates]
    found = Antecedents.over(rows)
    draw = random.Random(0)
    shares = torch.tensor([sum(draw.randrange(n) == 0 for n in candidates) / 3 for _ in range(20000)])
    assert found.chance_share == pytest.approx(shares.mean().item(), abs=0.01)
    assert found.chance_share_sd == pytest.approx(shares.std().item(), abs=0.01)


def test_means_over_rows():
    looks = [torch.tensor([[True, False]]), torch.tensor([[True, True]])]
    rows = [
        Row(look, torch.tensor([[0.2, w]]), 4, 0.1 * w) for look, w in zip(looks, (0.0, 1.0), strict=True)
    ]
    found = Antecedents.over(rows)
    assert found.share.tolist() == [[1.0, 0.5]]
    torch.testing.assert_close(found.weight, torch.tensor([[0.2, 0.5]]))
    assert (found.rows, found.chance_share, found.chance_weight) == (2, 0.25, 0.05)
    with pytest.raises(ValueError, match="no row"):
        Antecedents.over([])


def test_content_words():
    content = ["cat", "Cats", "dog,", "man's", "children", "sees", "slept.", "old"]
    function = [
        "The",
        "it",
        "is",
        "was",
        "did",
        "will",
        "not",
        "because",
        "in",
        "often",
        "fifty-six",
        "my",
        "who",
    ]
    assert [word for word in content if not is_content(word)] == []
    assert [word for word in function if is_content(word)] == []
