"""Small models for tests: sizes all different, so that no transposed axis can pass by chance."""

from dataclasses import replace

import torch

from attnlab.config import (
    AttentionConfig,
    Axes,
    Init,
    Mask,
    ModelConfig,
    Norm,
    Scale,
    Score,
    Site,
    WhereConfig,
)
from attnlab.data.tokenizer import EOS
from attnlab.model.initialise import build
from attnlab.model.transformer import Transformer

CORRECT = AttentionConfig(
    name="correct", scale=Scale.sqrt_d_k, mask=Mask.before_softmax, mask_fill=float("-inf"), split=Axes.heads_first,
    merge=Axes.heads_first, score=Score.dot, qk_norm=False, qk_norm_length=24, init=Init.xavier,
    where=WhereConfig(sites=[*Site], layers=None, heads=None),
)  # fmt: skip

NO_LEAK = {  # another function than the correct one, or the same, but no position sees a later one
    "correct": CORRECT,
    "no_scale": replace(CORRECT, scale=Scale.none),
    "renormalized": replace(CORRECT, mask=Mask.after_softmax_renormalized),
    "additive": replace(CORRECT, score=Score.additive, scale=Scale.none),
    "qk_norm": replace(CORRECT, qk_norm=True, scale=Scale.none),
}
WRONG_MASK = {
    "after_softmax": replace(CORRECT, mask=Mask.after_softmax),
    "zero_fill": replace(CORRECT, mask_fill=0.0),
    "no_mask": replace(CORRECT, mask=Mask.none),
    "inverted": replace(CORRECT, mask=Mask.inverted),
}
WRONG_AXES = {
    "wrong_split": replace(CORRECT, split=Axes.no_transpose, merge=Axes.no_transpose),
    "wrong_merge": replace(CORRECT, merge=Axes.no_transpose),
}
ARMS = NO_LEAK | WRONG_MASK | WRONG_AXES


def small_model(
    factors: AttentionConfig = CORRECT, *, vocab_size: int = 29, decoder_layers: int = 3, norm: Norm = Norm.pre,
    dropout: float = 0.0, seed: int = 3,
) -> Transformer:  # fmt: skip
    """d_model 24, 3 heads of d_k 10 and d_v 6, 2 encoder layers, in eval mode, biases and norms not trivial."""
    config = ModelConfig(
        name="small", d_model=24, heads=3, d_k=10, d_v=6, d_ff=40, encoder_layers=2, decoder_layers=decoder_layers,
        dropout=dropout, attention_dropout=dropout, norm=norm, tie_embeddings=False,
    )  # fmt: skip
    model = build(config, factors, vocab_size, seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
        model.projection[EOS] *= 1.5  # so that many translations end by themselves, at many lengths
    return model.eval()


def random_sentences(count: int, vocab_size: int = 29, longest: int = 12, seed: int = 0) -> list[list[int]]:
    """Pieces without specials, 1 to `longest` of them."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, longest + 1, (count,), generator=generator).tolist()
    return [torch.randint(4, vocab_size, (length,), generator=generator).tolist() for length in lengths]
