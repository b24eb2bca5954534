"""Beam search with the length penalty of Wu et al. 2016 (GNMT), equation 14, as in the paper's section 6.1.

A hypothesis Y scores log P(Y|X) / lp(Y) with lp(Y) = ((5 + |Y|) / 6)^alpha, where |Y| counts the pieces and EOS, and
P is over the tokens that may be chosen (neither PAD nor BOS). alpha 0 ranks by probability alone, which favours short
outputs; the paper has alpha 0.6 and beam 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from attnlab.data.tokenizer import BOS, EOS
from attnlab.measure.scorers import Scorer, next_logits


@dataclass(frozen=True)
class Hypothesis:
    """A finished translation: pieces without BOS and EOS, log P with EOS (nats), and log P / lp."""

    pieces: list[int]
    log_prob: float
    score: float


def length_penalty(length: int, alpha: float) -> float:
    """The penalty lp of a hypothesis of `length` tokens, EOS included."""
    return ((5 + length) / 6) ** alpha


def beam_search(
    scorer: Scorer, sentences: int, beam: int, alpha: float, max_length: int, device: torch.device | str
) -> list[Hypothesis]:
    """The best hypothesis of each sentence; the scorer begins with one row a sentence.

    Each step takes the `beam` likeliest extensions of a sentence's live hypotheses: those with EOS are done, the
    others live on, so that a beam of 1 is greedy search. A live hypothesis is dropped only once it cannot win, and a
    sentence is done when none is left. After `max_length` pieces EOS must come, at its own probability.
    Raises ValueError for alpha below 0, a beam below 1, or EOS of no probability.
    """
    if alpha < 0 or beam < 1:
        raise ValueError(f"allowed: alpha from 0 and beam from 1, got alpha {alpha} and beam {beam}")
    prefix = torch.full((sentences, 1), BOS, device=device)  # [R,t], R live hypotheses
    total = torch.zeros(sentences, device=device, dtype=torch.float64)  # [R], log P so far
    owner = torch.arange(sentences, device=device)  # [R], the sentence of a row
    slot = torch.zeros_like(owner)  # [R], its place among the rows of that sentence
    best: dict[int, Hypothesis] = {}
    best_score = torch.full_like(total, -torch.inf)  # [sentences]

    for length in range(1, max_length + 2):  # tokens of a hypothesis after this step
        log_probs = next_logits(scorer, prefix).log_softmax(dim=-1)
        if length <= max_length:
            values, tokens = log_probs.topk(min(beam, log_probs.shape[1]))  # [R,k]
        else:
            values = log_probs[:, EOS : EOS + 1]
            tokens = torch.full_like(values, EOS, dtype=torch.long)

        # The extensions of a sentence side by side, [sentences, beam, k], and the likeliest of them.
        shape = (sentences, beam, values.shape[1])
        log_p = total.new_full(shape, -torch.inf)
        log_p[owner, slot] = total[:, None] + values
        log_p, place = log_p.flatten(1).topk(beam)  # [sentences, beam]
        tokens = prefix.new_zeros(shape).index_put_((owner, slot), tokens).flatten(1).gather(1, place)
        row_of = prefix.new_zeros(shape[:2]).index_put_(
            (owner, slot), torch.arange(len(prefix), device=device)
        )
        rows = row_of.gather(1, place // shape[2])

        ended = tokens == EOS
        score, winner = (log_p.masked_fill(~ended, -torch.inf) / length_penalty(length, alpha)).max(dim=1)
        for i in (score > best_score).nonzero()[:, 0].tolist():
            pieces = prefix[rows[i, winner[i]], 1:].tolist()
            best[i] = Hypothesis(pieces, float(log_p[i, winner[i]]), float(score[i]))
        best_score = torch.maximum(score, best_score)

        # log P only falls from here and lp is largest at the longest hypothesis: no live one gets above this bound.
        bound = log_p / length_penalty(max_length + 1, alpha)
        live = ~ended & (bound > best_score[:, None])
        if not bool(live.any()):
            break
        owner, slot = live.nonzero(as_tuple=True)[0], live.cumsum(dim=1)[live] - 1
        scorer.reorder(rows[live])
        prefix = torch.cat([prefix[rows[live]], tokens[live][:, None]], dim=1)
        total = log_p[live]

    if len(best) < sentences:
        raise ValueError("a sentence has no hypothesis that ends: EOS has no probability")
    return [best[i] for i in range(sentences)]
