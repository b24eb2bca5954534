"""Signs that a run did not learn to translate, whatever its teacher-forced loss says."""

from __future__ import annotations

from attnlab.config import Protocol

LEAK_GAP = 0.1  # nats a token: an arm that does not leak has 1e-6, the mildest mistake of the pilot 0.37
TOO_GOOD_LOSS = 0.5  # times dev/prefix_nll: relative, so that an easy corpus with a low loss raises nothing
TOO_GOOD_ACCURACY = 0.5  # a model that gets half of the tokens right in context ...
BLEU_FLOOR = 2.0  # ... has more BLEU than this when it runs free
FEW_DISTINCT = 0.1
MANY_EMPTY = 0.05


def alarms(metrics: dict[str, float]) -> list[str]:
    """One sentence for each sign, judged from the metrics that are there (names as in docs/metrics.md).

    Thresholds are the constants above. Each is written so that a NaN raises the alarm.
    """
    found = []
    if "dev/leak_gap" in metrics and not metrics["dev/leak_gap"] <= LEAK_GAP:
        found.append(
            f"the model sees the future: scored from its own prefix each token costs {metrics['dev/leak_gap']:.2f} "
            f"nats more than teacher-forced (limit {LEAK_GAP})"
        )
    if {"dev/nll", "dev/prefix_nll"} <= metrics.keys():
        nll, prefix_nll = metrics["dev/nll"], metrics["dev/prefix_nll"]
        if not nll >= TOO_GOOD_LOSS * prefix_nll:
            found.append(
                f"teacher-forced loss too good to be true: {nll:.3f} nats, less than {TOO_GOOD_LOSS:.0%} of the "
                f"{prefix_nll:.3f} nats scored from the prefix"
            )
    for protocol in Protocol:
        found += _translation_alarms(metrics, protocol)
    return found


def _translation_alarms(metrics: dict[str, float], protocol: Protocol) -> list[str]:
    name, found = f"test/{protocol}", []
    if {"dev/accuracy", f"{name}/bleu"} <= metrics.keys():
        accuracy, bleu = metrics["dev/accuracy"], metrics[f"{name}/bleu"]
        if accuracy > TOO_GOOD_ACCURACY and not bleu >= BLEU_FLOOR:
            found.append(
                f"teacher-forced accuracy too good to be true: {accuracy:.0%} of the tokens right, "
                f"yet {bleu:.1f} BLEU by protocol {protocol}"
            )
    if f"{name}/distinct" in metrics and not metrics[f"{name}/distinct"] >= FEW_DISTINCT:
        found.append(
            f"collapse: only {metrics[f'{name}/distinct']:.1%} of the translations by protocol {protocol} differ "
            f"(limit {FEW_DISTINCT:.0%})"
        )
    if f"{name}/empty" in metrics and not metrics[f"{name}/empty"] <= MANY_EMPTY:
        found.append(
            f"{metrics[f'{name}/empty']:.0%} of the translations by protocol {protocol} are empty "
            f"(limit {MANY_EMPTY:.0%})"
        )
    return found
