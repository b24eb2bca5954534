import math

import pytest

from attnlab.config import Site
from attnlab.measure.alarms import judge, judge_text

HEALTHY = {
    "dev/nll": 1.9, "dev/prefix_nll": 1.91, "dev/leak_gap": 1e-6, "dev/accuracy": 0.6, "test/prefix/bleu": 24.6,
    "test/prefix/distinct": 0.97, "test/prefix/empty": 0.0, "test/cached/bleu": 24.6, "test/cached/distinct": 0.97,
    "test/cached/empty": 0.0, "test/prefix/tied": 0.01, "test/cached/tied": 0.0, "probe/empty_rows/encoder": 0.0,
    "probe/empty_rows/decoder": 0.0, "probe/empty_rows/cross": 0.0,
}  # fmt: skip


def alarms(metrics):
    return [sentence for sentence in judge(metrics).values() if sentence is not None]


def test_a_healthy_run_raises_none():
    assert alarms(HEALTHY) == []
    assert alarms({}) == []
    easy = {
        "dev/nll": 0.05,
        "dev/prefix_nll": 0.051,
        "dev/leak_gap": 0.001,
        "dev/accuracy": 0.99,
        "test/prefix/bleu": 97.0,
    }
    assert alarms(easy) == []  # an easy corpus has a low loss
    untrained = {"dev/nll": 8.9, "dev/prefix_nll": 8.9, "dev/accuracy": 0.05, "test/prefix/bleu": 0.0}
    assert alarms(untrained) == []


def test_an_accuracy_that_holds_from_the_prefix_is_not_too_good():
    """40 updates on 300 pairs: tokens are letters, half of them right, and no word is."""
    early = {"dev/accuracy": 0.55, "test/prefix/bleu": 1.4}
    assert len(alarms(early)) == len(alarms(early | {"dev/prefix_accuracy": 0.06})) == 1
    assert len(alarms(early | {"dev/prefix_accuracy": math.nan})) == 1
    assert alarms(early | {"dev/prefix_accuracy": 0.54}) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dev/leak_gap": 0.11}, "sees the future"),
        ({"dev/leak_gap": math.nan}, "sees the future"),
        ({"dev/nll": 0.94}, "loss too good to be true"),
        ({"test/prefix/bleu": 0.3}, "accuracy too good to be true"),
        ({"test/cached/distinct": 0.09}, "collapse"),
        ({"test/prefix/empty": 0.06}, "empty"),
        ({"test/prefix/empty": math.nan}, "empty"),
        ({"test/cached/tied": 0.21}, "tied outputs"),
        ({"test/cached/tied": math.nan}, "tied outputs"),
        ({"probe/empty_rows/decoder": 0.001}, "empty rows"),
        ({"probe/empty_rows/cross": math.nan}, "empty rows"),
    ],
)
def test_each_sign_raises_one_sentence(change, words):
    found = alarms(HEALTHY | change)
    assert len(found) == 1
    assert words in found[0]
    assert "\n" not in found[0]


def test_the_arms_of_the_pilot_raise_alarms():
    zero_fill = {"dev/nll": 0.335, "dev/prefix_nll": 19.6, "dev/leak_gap": 19.3, "dev/accuracy": 0.917,
                 "test/prefix/bleu": 0.0, "test/prefix/empty": 1.0, "test/prefix/distinct": 0.001}  # fmt: skip
    assert len(alarms(zero_fill)) == 5
    wrong_split = {"dev/nll": 2.164, "dev/prefix_nll": 2.53, "dev/leak_gap": 0.37, "dev/accuracy": 0.58,
                   "test/prefix/bleu": 13.29, "test/prefix/empty": 0.0, "test/prefix/distinct": 0.9}  # fmt: skip
    assert len(alarms(wrong_split)) == 1


def test_what_is_judged_is_what_the_metrics_allow():
    at_an_evaluation = {"dev/nll": 1.9, "dev/prefix_nll": 1.91, "dev/leak_gap": 0.01, "dev/accuracy": 0.6}
    assert judge({}) == {}
    # Translations are not judged, so that what was said of them is not withdrawn.
    assert judge(at_an_evaluation) == {"leak": None, "loss": None}
    kinds = {"leak", "loss"} | {
        f"{sign}/{protocol}"
        for sign in ("accuracy", "collapse", "tied", "empty")
        for protocol in ("prefix", "cached")
    }
    kinds |= {f"rows/{site}" for site in Site}
    assert judge(HEALTHY) == dict.fromkeys(kinds)
    leaking, worse = (judge(HEALTHY | {"dev/leak_gap": gap}) for gap in (1.5, 2.5))
    assert leaking.keys() == worse.keys() == kinds
    assert "1.50 nats" in leaking["leak"]
    assert "2.50 nats" in worse["leak"]
    assert all(leaking[kind] is None for kind in kinds - {"leak"})


@pytest.mark.parametrize(
    ("counts", "dropped", "raised"),
    [((0, 0), 0, False), ((2, 1), 0, True), ((0, 1), 0, True), ((2, 1), 3, False)],
)
def test_R37_copies_of_the_test_set_that_are_trained_on_are_an_alarm(counts, dropped, raised):
    report = {
        "train/dropped_overlap": dropped,
        "overlap/dev/exact": 0, "overlap/dev/normalized": 0, "overlap/dev/source_only": 9,
        "overlap/test/exact": counts[0], "overlap/test/normalized": counts[1], "overlap/test/source_only": 9,
    }  # fmt: skip
    judged = judge_text(report)
    assert judged["overlap/dev"] is None
    assert (judged["overlap/test"] is not None) == raised
    if raised:
        assert f"{sum(counts)} training pairs" in judged["overlap/test"]
