"""Statistics against numbers worked out by hand, against scipy, and against sacreBLEU's own paired bootstrap."""

import itertools
import math
import sys

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest, estimate_ci
from scipy import stats

from attnlab.errors import UserError
from attnlab.study.statistics import (
    Estimate,
    Interval,
    bleu_of,
    corrected,
    difference,
    estimate,
    holm,
    proportion,
    ratio,
    resampled_bleu,
    seed_and_sentence_bootstrap,
    sentence_bootstrap,
    sentence_statistics,
    t_test,
)

WORDS = ["the", "dog", "cat", "sees", "sleeps", "big", "small", "a", "house", "."]


def texts(seed, sentences, noise):
    """References, and translations of them in which a share of the words is another one."""
    rng = np.random.default_rng(seed)
    references, translations = [], []
    for _ in range(sentences):
        words = rng.choice(WORDS, size=rng.integers(1, 12))
        kept = [w if rng.random() > noise else str(rng.choice(WORDS)) for w in words]
        references.append(" ".join(words))
        translations.append(" ".join(kept[: rng.integers(len(kept) + 1)] if rng.random() < 0.2 else kept))
    return references, translations


@pytest.fixture(scope="module")
def systems():
    """References, and two translations of them."""
    references, good = texts(1, 60, 0.1)
    _, bad = texts(1, 60, 0.5)
    return references, good, bad


def test_mean_sd_and_interval_by_hand():
    # 1, 2, 6: mean 3, squares 4 + 1 + 9 over 2 = 7; t(0.975, 2) = 4.302652729696142
    found = estimate([1.0, 2.0, 6.0])
    half = 4.302652729696142 * math.sqrt(7 / 3)
    assert (found.n, found.mean) == (3, 3.0)
    assert found.sd == pytest.approx(math.sqrt(7))
    assert found.interval.low == pytest.approx(3 - half)
    assert found.interval.high == pytest.approx(3 + half)


def test_interval_is_scipy_s():
    values = list(np.random.default_rng(2).normal(size=7))
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    found = estimate(values).interval
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_one_value_has_no_sd_and_no_interval():
    found = estimate([2.5])
    assert (found.mean, found.sd, found.interval) == (2.5, None, None)
    with pytest.raises(ValueError, match="no values"):
        estimate([])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_R43_a_number_that_is_not_finite_is_never_averaged_away(bad):
    found = estimate([1.0, bad, 2.0])
    assert found.n == 3
    assert not math.isfinite(found.mean)
    assert found.interval is None
    assert difference({1: bad, 2: 1.0}, {1: 0.0, 2: 0.5}).interval is None
    assert math.isnan(t_test({1: bad, 2: 1.0}, {1: 0.0, 2: 0.5}))


def test_differences_are_paired_by_seed_over_the_seeds_that_both_have():
    found = difference({1: 5.0, 2: 7.0, 9: 100.0}, {2: 6.0, 1: 2.0, 8: -100.0})
    assert (found.n, found.mean) == (2, 2.0)  # 3 and 1
    assert found.sd == pytest.approx(math.sqrt(2))
    assert difference({1: 1.0}, {2: 1.0}) is None


def test_paired_p_value_is_scipy_s():
    arm, control = {1: 1.2, 2: 2.1, 3: 3.4}, {1: 1.0, 2: 2.0, 3: 2.9}
    assert t_test(arm, control) == pytest.approx(stats.ttest_rel([1.2, 2.1, 3.4], [1.0, 2.0, 2.9]).pvalue)
    assert t_test({1: 1.0, 2: 1.0}, {1: 1.0, 2: 1.0}) == 1.0
    assert math.isnan(t_test({1: 1.0}, {1: 2.0}))


@pytest.mark.filterwarnings("error")
def test_differences_that_differ_by_rounding_alone_have_no_spread():
    assert 0.3 - 0.1 != 0.2
    assert t_test({1: 0.3, 2: 0.2}, {1: 0.1, 2: 0.0}) == 0.0
    assert t_test({1: 0.1 + 0.2, 2: 0.5}, {1: 0.3, 2: 0.5}) == 1.0


def test_ratio_is_a_geometric_mean():
    found = ratio({1: 2.0, 2: 1.0}, {1: 1.0, 2: 2.0})
    assert found.mean == pytest.approx(1.0)
    half = stats.t.ppf(0.975, 1) * np.std([math.log(2), -math.log(2)], ddof=1) / math.sqrt(2)
    assert (found.interval.low, found.interval.high) == pytest.approx((math.exp(-half), math.exp(half)))


def test_a_ratio_of_zeros_is_zero_and_a_ratio_to_zero_is_none():
    """A BLEU that falls by all of it has no logarithm, and is the most that a claim of 30% could ask for."""
    control = {1: 20.0, 2: 21.0, 3: 22.0}
    assert ratio(dict.fromkeys(control, 0.0), control) == Estimate(3, 0.0, 0.0, Interval(0.0, 0.0))
    found = ratio({1: 0.0, 2: 2.1, 3: 0.0}, control)
    plain = estimate([0.0, 0.1, 0.0])
    assert (found.mean, found.sd) == (pytest.approx(plain.mean), pytest.approx(plain.sd))
    assert plain.interval.low < -0.1
    assert found.interval == Interval(0.0, pytest.approx(plain.interval.high))
    assert ratio({1: 0.0}, {1: 0.0}) is None
    assert ratio({1: 1.0}, {1: -1.0}) is None
    assert ratio({1: -1.0}, {1: 1.0}) is None


def test_the_interval_that_is_left_to_each_of_several_tests():
    one = estimate([1.0, 2.0, 4.0])
    assert corrected(one, 1) == one.interval
    low, high = stats.t.interval(1 - 0.05 / 4, 2, loc=one.mean, scale=one.sd / math.sqrt(3))
    assert corrected(one, 4) == Interval(pytest.approx(low), pytest.approx(high))
    assert corrected(estimate([1.0]), 4) is None


def test_holm_by_hand():
    # sorted .01 .02 .03 .04: times 4, 3, 2, 1 = .04 .06 .06 .04, never falling: .04 .06 .06 .06
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    found = holm([math.nan, 0.02, 0.5])  # two tests
    assert math.isnan(found[0])
    assert found[1:] == pytest.approx([0.04, 0.5])


def test_holm_is_the_closed_test_of_bonferroni():
    """Marcus, Peritz and Gabriel 1976: p of one hypothesis is the largest over all intersections that it is in."""
    p = np.random.default_rng(0).beta(0.3, 2.0, size=6)
    subsets = [s for n in range(1, 7) for s in itertools.combinations(range(6), n)]
    closed = [max(min(1.0, len(s) * min(p[list(s)])) for s in subsets if i in s) for i in range(6)]
    assert holm(list(p)) == pytest.approx(closed)


def test_exact_interval_of_all_and_of_none():
    # of n in n the lower end is (0.025) ** (1 / n)
    assert proportion(30, 30) == Interval(pytest.approx(0.025 ** (1 / 30)), 1.0)
    assert proportion(0, 30) == Interval(0.0, pytest.approx(1 - 0.025 ** (1 / 30)))
    expected = stats.beta.ppf([0.025, 0.975], [3, 4], [8, 7])
    assert (proportion(3, 10).low, proportion(3, 10).high) == pytest.approx(tuple(expected))


def test_bleu_of_summed_statistics_is_sacrebleu_s():
    references, translations = texts(5, 40, 0.4)
    statistics = sentence_statistics(translations, references)
    for size in (1, 2, 3, 5, 8, 40):  # the small ones have orders without matches or without n-grams
        for start in range(0, 40, size):
            part = slice(start, start + size)
            expected = BLEU(force=True).corpus_score(translations[part], [references[part]]).score
            assert float(bleu_of(statistics[part].sum(axis=0))) == pytest.approx(expected, abs=1e-9)
    assert float(bleu_of(sentence_statistics(["", ""], ["a b", "c"]).sum(axis=0))) == 0.0


def test_one_seed_s_bootstrap_is_sacrebleu_s_paired_bootstrap(systems):
    references, good, bad = systems
    _, scores = PairedTest(
        [("control", good), ("arm", bad)], {"BLEU": BLEU(force=True)}, [references], "bs", 200
    )()  # fmt: skip
    control, arm = (sentence_statistics(lines, references) for lines in (good, bad))
    ours = sentence_bootstrap(arm, control, 200)
    theirs = scores["BLEU"]
    assert ours.difference == pytest.approx(theirs[1].score - theirs[0].score)
    assert ours.p == pytest.approx(theirs[1].p_value)
    for statistics, result in ((control, theirs[0]), (arm, theirs[1])):
        assert estimate_ci(resampled_bleu(statistics, 200)) == pytest.approx((result.mean, result.ci))
    assert ours.interval.low < ours.difference < ours.interval.high < 0


def test_p_of_two_systems_that_hardly_differ_is_sacrebleu_s(systems):
    references, good, _ = systems
    other = [line + " a" if i % 7 == 0 else line for i, line in enumerate(good)]
    _, scores = PairedTest([("c", good), ("a", other)], {"BLEU": BLEU(force=True)}, [references], "bs", 200)()
    arm, control = sentence_statistics(other, references), sentence_statistics(good, references)
    assert sentence_bootstrap(arm, control, 200).p == pytest.approx(scores["BLEU"][1].p_value)


def test_p_is_the_tail_that_the_docstring_says(systems):
    """All resampled differences are below 0 here, so p is that of one tail and half of that of both."""
    references, good, _ = systems
    worse = good[:45] + ["a"] * 3 + good[48:]
    arm, control = sentence_statistics(worse, references), sentence_statistics(good, references)
    drawn = resampled_bleu(arm) - resampled_bleu(control)
    found = sentence_bootstrap(arm, control)
    assert drawn.max() <= 0
    assert found.p == (np.sum(drawn < drawn.mean() - abs(found.difference)) + 1) / 1001


def test_two_levels_hold_more_spread_than_sentences_and_repeat_themselves(systems):
    references, good, bad = systems
    control = sentence_statistics(good, references)
    close = sentence_statistics(good[:30] + bad[30:], references)
    far = sentence_statistics(bad, references)
    both = seed_and_sentence_bootstrap([(close, control), (far, control)], 400)
    width = both.interval.high - both.interval.low
    assert both.difference == pytest.approx(
        (sentence_bootstrap(close, control).difference + sentence_bootstrap(far, control).difference) / 2
    )
    for one in (close, far):
        alone = sentence_bootstrap(one, control, 400).interval
        assert width > alone.high - alone.low
    assert both == seed_and_sentence_bootstrap([(close, control), (far, control)], 400)


def test_two_levels_by_brute_force_over_texts(systems):
    references, good, bad = systems
    close = good[:30] + bad[30:]
    seeds = [(close, good), (bad, good)]
    sentences = np.random.default_rng(12345).choice(60, size=(25, 60))
    drawn_seeds = np.random.default_rng(12346).integers(2, size=(2, 25))

    def bleu(lines, picked):
        return (
            BLEU(force=True).corpus_score([lines[i] for i in picked], [[references[i] for i in picked]]).score
        )

    drawn = [
        np.mean([bleu(seeds[s][0], picked) - bleu(seeds[s][1], picked) for s in drawn_seeds[:, r]])
        for r, picked in enumerate(sentences)
    ]
    pairs = [tuple(sentence_statistics(lines, references) for lines in pair) for pair in seeds]
    found = seed_and_sentence_bootstrap(pairs, 25).interval
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])))


def test_seeds_of_one_replicate_share_its_sentences(systems):
    """Equal seeds add nothing: resampling them leaves exactly the sentence-level interval."""
    references, good, bad = systems
    pair = (sentence_statistics(bad, references), sentence_statistics(good, references))
    three, one = seed_and_sentence_bootstrap([pair] * 3), sentence_bootstrap(*pair)
    assert (three.interval.low, three.interval.high) == pytest.approx((one.interval.low, one.interval.high))


def test_without_scipy_one_sentence_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(UserError, match=r"pip install 'attnlab\[figures\]'"):
        estimate([1.0, 2.0])
