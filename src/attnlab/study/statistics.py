"""What numbers of several seeds, or of many sentences, say: estimates, intervals, corrections.

Two questions are kept apart. Seeds: would another training give the same? (t-intervals, paired by seed). Sentences:
would another test set? (paired bootstrap, Koehn 2004). The two-level bootstrap asks both at once.
Intervals are 95%. A NaN among the values makes the mean NaN and takes the interval away; it is never left out.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnlab.errors import UserError

LEVEL = 0.95
ROUNDING = 1e-12  # of the larger of two numbers: what their difference has by rounding alone
RESAMPLES = 1000
GENERATOR = 12345  # sacreBLEU's own default, so that its `--paired-bs` draws the same sentences
ORDER = 4  # of BLEU's n-grams
_COUNTS = slice(2, 2 + ORDER)  # columns of the statistics: lengths of output and reference, matches, n-grams
_TOTALS = slice(2 + ORDER, 2 + 2 * ORDER)


@dataclass(frozen=True)
class Interval:
    """Both ends belong to it."""

    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """Mean over n values; `sd` (n - 1 in the denominator) needs two, `interval` two finite ones."""

    n: int
    mean: float
    sd: float | None
    interval: Interval | None


@dataclass(frozen=True)
class Resampled:
    """A difference of BLEU between an arm and its control, on resampled test sets.

    p: as sacreBLEU's paired bootstrap counts it (Koehn 2004; Riezler and Maxwell 2005): how often the size of the
    resampled difference, less the mean of those sizes, is above the size of the difference on the test set. Where all
    resampled differences have one sign that is one tail, about half of a two-sided p.
    """

    seeds: int
    difference: float
    interval: Interval
    p: float


def estimate(values: Sequence[float]) -> Estimate:
    """Mean, sd and Student's t-interval of at least one value. Raises ValueError for none, UserError without scipy."""
    if not values:
        raise ValueError("an estimate of no values")
    n, mean = len(values), float(np.mean(values))
    if n == 1:
        return Estimate(1, mean, None, None)
    if not all(map(math.isfinite, values)):
        return Estimate(n, mean, math.nan, None)
    sd = float(np.std(values, ddof=1))
    return Estimate(n, mean, sd, _t_interval(n, mean, sd, LEVEL))


def corrected(one: Estimate, tests: int) -> Interval | None:
    """The t-interval that leaves 5% for `tests` of them together (Bonferroni); None where the estimate has none.

    one: of plain values, as `estimate` makes it.
    """
    if one.interval is None or one.sd is None:
        return None
    return _t_interval(one.n, one.mean, one.sd, 1 - (1 - LEVEL) / tests)


def _t_interval(n: int, mean: float, sd: float, level: float) -> Interval:
    half = float(scipy_stats().t.ppf(0.5 + level / 2, n - 1)) * sd / math.sqrt(n)
    return Interval(mean - half, mean + half)


def paired(arm: Mapping[int, float], control: Mapping[int, float]) -> list[tuple[float, float]]:
    """(arm, control) for each seed that both have, in the order of the seeds."""
    return [(arm[seed], control[seed]) for seed in sorted(arm.keys() & control.keys())]


def difference(arm: Mapping[int, float], control: Mapping[int, float]) -> Estimate | None:
    """Arm - control over the seeds that both have (its `n`); None where they share none."""
    pairs = paired(arm, control)
    return estimate([a - b for a, b in pairs]) if pairs else None


def ratio(arm: Mapping[int, float], control: Mapping[int, float]) -> Estimate | None:
    """Arm / control over shared seeds: the geometric mean and a t-interval of the logarithm, turned back.

    Ratios are skewed and their logarithms are not: 1/2 and 2 must average to 1. `sd` is that of the plain ratios.
    An arm with a 0, which has no logarithm (a BLEU, say), has the mean and t-interval of the plain ratios, from 0 on.
    None where no seed is shared, a control is not above 0, or an arm is below it.
    """
    pairs = paired(arm, control)
    if not pairs or any(a < 0 or b <= 0 for a, b in pairs):
        return None
    if any(a == 0 for a, _ in pairs):
        one = estimate([a / b for a, b in pairs])
        return replace(one, interval=one.interval and Interval(max(0.0, one.interval.low), one.interval.high))
    logs = estimate([math.log(a) - math.log(b) for a, b in pairs])
    interval = logs.interval and Interval(math.exp(logs.interval.low), math.exp(logs.interval.high))
    return Estimate(logs.n, math.exp(logs.mean), estimate([a / b for a, b in pairs]).sd, interval)


def t_test(arm: Mapping[int, float], control: Mapping[int, float]) -> float:
    """Two-sided p of Student's paired test; NaN with fewer than two shared seeds or a value that is not finite."""
    pairs = paired(arm, control)
    differences = [a - b for a, b in pairs]
    if len(differences) < 2 or not all(map(math.isfinite, differences)):
        return math.nan
    noise = ROUNDING * max(abs(value) for pair in pairs for value in pair)
    if max(differences) - min(differences) <= noise:  # t is infinite, or 0/0 where nothing differs at all
        return 0.0 if abs(differences[0]) > noise else 1.0
    return float(scipy_stats().ttest_1samp(differences, 0.0).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction (1979), in the order given; a NaN is no test: it stays NaN and does not count."""
    order = sorted(
        (index for index, p in enumerate(p_values) if not math.isnan(p)), key=lambda index: p_values[index]
    )
    corrected, largest = [math.nan] * len(p_values), 0.0
    for done, index in enumerate(order):
        largest = max(largest, (len(order) - done) * p_values[index])
        corrected[index] = min(1.0, largest)
    return corrected


def proportion(k: int, n: int) -> Interval:
    """Exact (Clopper and Pearson 1934) interval of k successes in n; it has a width even where k is 0 or n."""
    result = scipy_stats().binomtest(k, n).proportion_ci(LEVEL, method="exact")
    return Interval(float(result.low), float(result.high))


def sentence_statistics(translations: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """What BLEU adds up over sentences, [sentences, 10]: lengths of output and reference, matches, n-grams.

    sacreBLEU's, cased and tokenised by 13a. Raises ValueError for counts of lines that differ.
    """
    from sacrebleu.metrics import BLEU

    if len(translations) != len(references):
        raise ValueError(f"got {len(translations)} translations for {len(references)} references")
    bleu = BLEU(
        force=True, effective_order=True
    )  # effective_order: no warning; the counts do not depend on it
    rows = []
    for translation, reference in zip(translations, references, strict=True):
        one = bleu.sentence_score(translation, [reference])
        rows.append([one.sys_len, one.ref_len, *one.counts, *one.totals])
    return np.array(rows, dtype=np.float64).reshape(len(rows), 2 + 2 * ORDER)


def bleu_of(sums: np.ndarray) -> np.ndarray:
    """Corpus BLEU, 0 to 100, of summed statistics [..., 10] -> [...], smoothed as sacreBLEU does (exp).

    Orders without matches count as 1/2, 1/4, ... of a match; no match at all, or no n-gram of an order, gives 0.
    """
    outputs, references = sums[..., 0], sums[..., 1]
    matches, totals = sums[..., _COUNTS], sums[..., _TOTALS]
    halves = 0.5 ** np.cumsum(matches == 0, axis=-1)
    smoothed = np.where(matches == 0, halves, matches)
    defined = (totals > 0).all(axis=-1) & (matches > 0).any(axis=-1)
    logs = np.log(smoothed) - np.log(np.maximum(totals, 1))
    # With no output the length ratio is undefined; `defined` is False there.
    brevity = np.minimum(0.0, 1 - references / np.maximum(outputs, 1))
    return np.where(defined, 100 * np.exp(logs.mean(axis=-1) + brevity), 0.0)


def resampled_bleu(statistics: np.ndarray, resamples: int = RESAMPLES) -> np.ndarray:
    """BLEU on test sets of resampled sentences: statistics [sentences, 10] -> [resamples].

    The draws depend on the two sizes alone, so systems on one test set meet the same resampled sets: paired.
    """
    return bleu_of(_draws(len(statistics), resamples) @ statistics)


def sentence_bootstrap(arm: np.ndarray, control: np.ndarray, resamples: int = RESAMPLES) -> Resampled:
    """Difference of BLEU of two systems with statistics [sentences, 10], over resampled sentences (one seed)."""
    return seed_and_sentence_bootstrap([(arm, control)], resamples)


def seed_and_sentence_bootstrap(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]], resamples: int = RESAMPLES
) -> Resampled:
    """Mean difference of BLEU over seeds, resampling seeds (outer) and sentences (inner).

    pairs: (arm, control) statistics of each shared seed. All seeds of one replicate get the same sentences: they
    share one test set, and sentences drawn for each apart would average its noise away. With few seeds the outer
    level is too narrow (a bootstrap of 3 values is), so read it beside the t-interval. Raises ValueError for no pairs.
    """
    if not pairs:
        raise ValueError("a bootstrap of no seeds")
    observed = float(np.mean([bleu_of(a.sum(axis=0)) - bleu_of(c.sum(axis=0)) for a, c in pairs]))
    by_seed = np.stack([resampled_bleu(a, resamples) - resampled_bleu(c, resamples) for a, c in pairs])
    if len(pairs) == 1:
        drawn = by_seed[0]
    else:
        chosen = np.random.default_rng(GENERATOR + 1).integers(len(pairs), size=(len(pairs), resamples))
        drawn = np.take_along_axis(by_seed, chosen, axis=0).mean(axis=0)
    tails = (1 - LEVEL) / 2
    low, high = np.quantile(drawn, [tails, 1 - tails])
    sizes = np.abs(drawn)
    beyond = int((sizes - sizes.mean() >= abs(observed)).sum())  # equal translations: all of them
    return Resampled(len(pairs), observed, Interval(float(low), float(high)), (beyond + 1) / (resamples + 1))


@functools.lru_cache(maxsize=4)  # one test set has the same draws for every run of a study
def _draws(sentences: int, resamples: int) -> np.ndarray:
    """How often each sentence is in each resampled test set, [resamples, sentences]; not to be written to."""
    picked = np.random.default_rng(GENERATOR).choice(sentences, size=(resamples, sentences), replace=True)
    counts = np.stack([np.bincount(row, minlength=sentences) for row in picked]).astype(np.float64)
    counts.flags.writeable = False
    return counts


def scipy_stats() -> Any:
    """scipy.stats. Raises UserError where scipy is not installed."""
    try:
        from scipy import stats
    except ImportError:
        raise UserError(
            "statistics of a study: got no scipy, allowed: pip install 'attnlab[figures]', which brings it"
        ) from None
    return stats
