"""Does the decoder see the future? Two questions to the real model, without looking at its attention weights.

After-softmax masking gives zero weight to the future and leaks all the same, through the normaliser; so the
causality of the whole function is tested: by changing later tokens, and by the gradient to later inputs.
Shapes: B sentences, R = sentences x cuts, T target tokens, D d_model, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlab.data.batching import Batch
from attnlab.data.tokenizer import EOS, PAD
from attnlab.measure.probes import Metrics, quiet
from attnlab.model.transformer import Transformer

SENTENCES = 4  # of the batch, evenly spaced
CUTS = 4  # positions t in each of them, evenly spaced from the first on
FIRST_WORD = EOS + 1  # ids below are special tokens
SEED = 26  # of the replacement tokens: the same at every probe


def leak_metrics(model: Transformer, batch: Batch) -> Metrics:
    """Three numbers, each exactly 0 for a causal decoder up to rounding; {} if no target has two positions.

    `probe/leak/logits` and `probe/leak/logits_max`: all target tokens after position t are replaced by
    others; mean and largest absolute change of the logits at positions up to t. `probe/leak/gradient`: sum
    over j > t of the norm |d nll_t / d x_j|, x the embedded target tokens, divided by the sum over all j.
    Pooled over sentences and cuts t. Leaves no trace: replacement tokens have a generator of their own, and
    no parameter gets a gradient.
    """
    rows, cuts = _cuts((batch.tgt_in != PAD).sum(dim=1))
    if not len(rows):
        return {}
    width = int((batch.tgt_in[rows] != PAD).sum(dim=1).max())
    src, tgt_in, tgt_out = batch.src[rows], batch.tgt_in[rows, :width], batch.tgt_out[rows, :width]
    src_real, tgt_real = src != PAD, tgt_in != PAD
    position = torch.arange(width, device=tgt_in.device)
    past = position <= cuts[:, None]  # [R,T]
    index = torch.arange(len(rows), device=tgt_in.device)
    changed = replace_tokens(tgt_in, ~past & tgt_real, len(model.target_embedding.weight))

    with quiet(model):
        with torch.no_grad():
            memory = model.encode(src, src_real)
        with torch.enable_grad():
            x = model.target_embedding(tgt_in).detach().requires_grad_()
            logits = model.project(model.decode_embedded(x, memory, src_real, tgt_real))
            nll = nn.functional.cross_entropy(logits[index, cuts], tgt_out[index, cuts], reduction="sum")
            (gradient,) = torch.autograd.grad(nll, x)
            # the same shapes and the same way of computing, so that equal rows are equal to the last bit
            y = model.target_embedding(changed).detach().requires_grad_()
            other = model.project(model.decode_embedded(y, memory, src_real, tgt_real))
    change = (other - logits).detach()[past].double().abs()
    norms = gradient.double().norm(dim=-1)
    return {
        "probe/leak/logits": float(change.mean()),
        "probe/leak/logits_max": float(change.max()),
        "probe/leak/gradient": float(norms[~past].sum() / norms.sum()),
    }


def _cuts(lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Of targets of `lengths` [B]: sentence and last position of the past, both [R], with a future each."""
    usable = (lengths >= 2).nonzero()[:, 0]
    chosen = usable[torch.linspace(0, len(usable) - 1, min(SENTENCES, len(usable))).long().to(usable.device)]
    step = torch.arange(CUTS, device=lengths.device)
    cuts = step * (lengths[chosen, None] - 1) // CUTS
    return chosen.repeat_interleave(CUTS), cuts.flatten()


def replace_tokens(ids: Tensor, where: Tensor, vocab_size: int) -> Tensor:
    """`ids` [R,T] with another ordinary token, always a different one, at each True of `where` [R,T].

    Raises ValueError for a vocabulary without two ordinary tokens.
    """
    words = vocab_size - FIRST_WORD
    if words < 2:
        raise ValueError(f"a vocabulary of {vocab_size} has no token to put in the place of another")
    generator = torch.Generator().manual_seed(SEED)
    shift = torch.randint(1, words, ids.shape, generator=generator).to(ids.device)
    return torch.where(where, FIRST_WORD + (ids - FIRST_WORD + shift) % words, ids)
