"""Signs that a run's numbers are not what they seem: a leak, a collapse, rows without a key, test sentences in train.

The sentences stand in the run's status, and from there beside its numbers in every table and page.
"""

from __future__ import annotations

from collections.abc import Mapping

from attnlab.config import Protocol, Site

LEAK_GAP = 0.1  # nats a token: an arm that does not leak has 1e-6, the mildest mistake of the pilot 0.37
TOO_GOOD_LOSS = 0.5  # times dev/prefix_nll: relative, so that an easy corpus with a low loss raises nothing
TOO_GOOD_ACCURACY = 0.5  # a model that gets half of the tokens right in context ...
BLEU_FLOOR = 2.0  # ... has more BLEU than this when it runs free
FEW_DISTINCT = 0.1
MANY_EMPTY = 0.05
MANY_TIED = 0.2  # a fifth of a test set is one sentence in no honest translation


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
    for site in Site:
        if f"probe/empty_rows/{site}" in metrics:
            share = metrics[f"probe/empty_rows/{site}"]
            judged[f"rows/{site}"] = None if share <= 0 else (
                f"empty rows: {share:.1%} of the queries of {site} attention have no key with weight"
            )  # fmt: skip
    for protocol in Protocol:
        judged |= _judge_translations(metrics, protocol)
    return judged


def judge_text(report: Mapping[str, int | str]) -> dict[str, str | None]:
    """Like `judge`, of a corpus' report: training pairs that stand in dev or test too, and were kept."""
    judged: dict[str, str | None] = {}
    for name in ("dev", "test"):
        copies = int(report[f"overlap/{name}/exact"]) + int(report[f"overlap/{name}/normalized"])
        kept = copies > 0 and report["train/dropped_overlap"] == 0
        judged[f"overlap/{name}"] = None if not kept else (
            f"overlap: {copies} training pairs stand in the {name} set too and are trained on (data.overlap=keep)"
        )  # fmt: skip
    return judged


def _judge_translations(metrics: Mapping[str, float], protocol: Protocol) -> dict[str, str | None]:
    judged: dict[str, str | None] = {}
    name = f"test/{protocol}"
    if {"dev/accuracy", f"{name}/bleu"} <= metrics.keys():
        accuracy, bleu = metrics["dev/accuracy"], metrics[f"{name}/bleu"]
        honest = metrics.get("dev/prefix_accuracy", 0.0) > TOO_GOOD_ACCURACY  # as good from its own prefix
        judged[f"accuracy/{protocol}"] = None if accuracy <= TOO_GOOD_ACCURACY or bleu >= BLEU_FLOOR or honest else (
            f"teacher-forced accuracy too good to be true: {accuracy:.0%} of the tokens right, "
            f"yet {bleu:.1f} BLEU by protocol {protocol}"
        )  # fmt: skip
    if f"{name}/distinct" in metrics:
        distinct = metrics[f"{name}/distinct"]
        judged[f"collapse/{protocol}"] = None if distinct >= FEW_DISTINCT else (
            f"collapse: only {distinct:.1%} of the translations by protocol {protocol} differ "
            f"(limit {FEW_DISTINCT:.0%})"
        )  # fmt: skip
    if f"{name}/tied" in metrics:
        tied = metrics[f"{name}/tied"]
        judged[f"tied/{protocol}"] = None if tied <= MANY_TIED else (
            f"tied outputs: {tied:.0%} of the translations by protocol {protocol} are one and the same text "
            f"(limit {MANY_TIED:.0%})"
        )  # fmt: skip
    if f"{name}/empty" in metrics:
        empty = metrics[f"{name}/empty"]
        judged[f"empty/{protocol}"] = None if empty <= MANY_EMPTY else (
            f"{empty:.0%} of the translations by protocol {protocol} are empty (limit {MANY_EMPTY:.0%})"
        )  # fmt: skip
    return judged
