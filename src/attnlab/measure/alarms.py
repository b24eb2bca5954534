"""Signs that a run did not learn to translate, whatever its teacher-forced loss says."""

from __future__ import annotations

from collections.abc import Mapping

from attnlab.config import Protocol

LEAK_GAP = 0.1  # nats a token: an arm that does not leak has 1e-6, the mildest mistake of the pilot 0.37
TOO_GOOD_LOSS = 0.5  # times dev/prefix_nll: relative, so that an easy corpus with a low loss raises nothing
TOO_GOOD_ACCURACY = 0.5  # a model that gets half of the tokens right in context ...
BLEU_FLOOR = 2.0  # ... has more BLEU than this when it runs free
FEW_DISTINCT = 0.1
MANY_EMPTY = 0.05


def judge(metrics: Mapping[str, float]) -> dict[str, str | None]:
    """Kind of alarm -> its sentence, or None where all is well.

    A kind is judged when all that it needs is in `metrics` (names as in docs/metrics.md), and missing otherwise, so
    that a later judgement replaces an earlier one of its kind alone. Thresholds are the constants above. Each is
    written so that a NaN raises the alarm.
    """
    judged: dict[str, str | None] = {}
    if "dev/leak_gap" in metrics:
        gap = metrics["dev/leak_gap"]
        judged["leak"] = None if gap <= LEAK_GAP else (
            f"the model sees the future: scored from its own prefix each token costs {gap:.2f} nats more than "
            f"teacher-forced (limit {LEAK_GAP})"
        )  # fmt: skip
    if {"dev/nll", "dev/prefix_nll"} <= metrics.keys():
        nll, prefix_nll = metrics["dev/nll"], metrics["dev/prefix_nll"]
        judged["loss"] = None if nll >= TOO_GOOD_LOSS * prefix_nll else (
            f"teacher-forced loss too good to be true: {nll:.3f} nats, less than {TOO_GOOD_LOSS:.0%} of the "
            f"{prefix_nll:.3f} nats scored from the prefix"
        )  # fmt: skip
    for protocol in Protocol:
        judged |= _judge_translations(metrics, protocol)
    return judged


def _judge_translations(metrics: Mapping[str, float], protocol: Protocol) -> dict[str, str | None]:
    judged: dict[str, str | None] = {}
    name = f"test/{protocol}"
    if {"dev/accuracy", f"{name}/bleu"} <= metrics.keys():
        accuracy, bleu = metrics["dev/accuracy"], metrics[f"{name}/bleu"]
        judged[f"accuracy/{protocol}"] = None if accuracy <= TOO_GOOD_ACCURACY or bleu >= BLEU_FLOOR else (
            f"teacher-forced accuracy too good to be true: {accuracy:.0%} of the tokens right, "
            f"yet {bleu:.1f} BLEU by protocol {protocol}"
        )  # fmt: skip
    if f"{name}/distinct" in metrics:
        distinct = metrics[f"{name}/distinct"]
        judged[f"collapse/{protocol}"] = None if distinct >= FEW_DISTINCT else (
            f"collapse: only {distinct:.1%} of the translations by protocol {protocol} differ "
            f"(limit {FEW_DISTINCT:.0%})"
        )  # fmt: skip
    if f"{name}/empty" in metrics:
        empty = metrics[f"{name}/empty"]
        judged[f"empty/{protocol}"] = None if empty <= MANY_EMPTY else (
            f"{empty:.0%} of the translations by protocol {protocol} are empty (limit {MANY_EMPTY:.0%})"
        )  # fmt: skip
    return judged
