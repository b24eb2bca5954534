"""How much a seed decides: the sd over seeds, and what pairing by seed takes away of a difference's variance.

Both intervals are exact for normal values. `mean` of the estimates is the sd, or the quotient, itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from attnlab.study.statistics import LEVEL, Estimate, Interval, paired, scipy_stats


def spread(values: Sequence[float]) -> Estimate:
    """The sd of at least one value, and its interval from chi^2: (n - 1) sd^2 / sigma^2 has n - 1 degrees of freedom."""
    n = len(values)
    if n < 2 or not all(map(math.isfinite, values)):
        return Estimate(n, math.nan, None, None)
    sd = float(np.std(values, ddof=1))
    tail = (1 - LEVEL) / 2
    low, high = (float(scipy_stats().chi2.ppf(p, n - 1)) for p in (tail, 1 - tail))
    return Estimate(n, sd, None, Interval(sd * math.sqrt((n - 1) / high), sd * math.sqrt((n - 1) / low)))


def pairing(arm: Mapping[int, float], control: Mapping[int, float]) -> Estimate | None:
    """Variance of the paired differences over that of unpaired ones, var(a - c) / (var a + var c), from 0 to 2.

    1: pairing gains nothing. With d = a - c and s = a + c the quotient is 2 / (1 + var s / var d); where a and c have
    one variance, s and d are independent, and var s / var d has an F distribution with (n - 1, n - 1) degrees of
    freedom around its true value (Pitman 1939). None where no seed is shared.
    """
    pairs = np.array(paired(arm, control))
    n = len(pairs)
    if n == 0:
        return None
    if n < 2 or not np.isfinite(pairs).all():
        return Estimate(n, math.nan, None, None)
    of_sum, of_difference = (float(np.var(pairs @ signs, ddof=1)) for signs in ((1.0, 1.0), (1.0, -1.0)))
    if of_sum + of_difference == 0:  # no seed differs from another
        return Estimate(n, math.nan, None, None)
    edge = float(scipy_stats().f.ppf(0.5 + LEVEL / 2, n - 1, n - 1))

    def quotient(factor: float) -> float:  # with the ratio of the variances times `factor`
        return 2 * of_difference / (of_difference + factor * of_sum)

    return Estimate(n, quotient(1.0), None, Interval(quotient(edge), quotient(1 / edge)))
