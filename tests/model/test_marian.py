"""The whole model against MarianMTModel of `transformers`, an implementation that we had no part in.

Post-LN, relu, one tied embedding matrix scaled by sqrt(d_model): Marian is the paper's Transformer. It orders its
sinusoids differently (all sines, then all cosines), so our table is copied into it.
"""

import pytest
import torch
from torch import Tensor, nn

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
from attnlab.data.tokenizer import BOS, EOS, PAD
from attnlab.model.initialise import build
from attnlab.model.recorder import Recorder
from attnlab.model.transformer import Transformer, sinusoids

transformers = pytest.importorskip("transformers", reason="needs the dev extra: pip install 'attnlab[dev]'")

VOCAB, D_MODEL, HEADS, D_FF, ENCODER, DECODER, POSITIONS = 53, 24, 3, 40, 2, 4, 32
CORRECT = AttentionConfig(
    name="correct", scale=Scale.sqrt_d_k, mask=Mask.before_softmax, mask_fill=float("-inf"), split=Axes.heads_first,
    merge=Axes.heads_first, score=Score.dot, qk_norm=False, qk_norm_length=24, init=Init.xavier,
    where=WhereConfig(sites=[*Site], layers=None, heads=None),
)  # fmt: skip


def ours() -> Transformer:
    """A post-LN model whose biases and norms are random too, so that none can be left out unseen."""
    config = ModelConfig(
        name="marian", d_model=D_MODEL, heads=HEADS, d_k=None, d_v=None, d_ff=D_FF, encoder_layers=ENCODER,
        decoder_layers=DECODER, dropout=0.1, attention_dropout=0.1, norm=Norm.post, tie_embeddings=True,
    )  # fmt: skip
    model = build(config, CORRECT, VOCAB, seed=3)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
            elif parameter.shape[1] == D_MODEL:
                parameter *= 1.7  # sharper attention than at the start
    return model.double().eval()


def copy(source: nn.Module, target: nn.Module) -> None:
    target.load_state_dict(source.state_dict())


def copy_attention(source: nn.Module, target: nn.Module) -> None:
    for mine, theirs in (("w_q", "q_proj"), ("w_k", "k_proj"), ("w_v", "v_proj"), ("w_o", "out_proj")):
        copy(getattr(source, mine), getattr(target, theirs))


def copy_common(source: nn.Module, target: nn.Module) -> None:
    copy_attention(source.self_attention, target.self_attn)
    copy(source.norm_self, target.self_attn_layer_norm)
    copy(source.feed_forward.w_1, target.fc1)
    copy(source.feed_forward.w_2, target.fc2)
    copy(source.norm_ff, target.final_layer_norm)


@torch.no_grad()
def marian(model: Transformer) -> nn.Module:
    """MarianMTModel with the weights of `model`."""
    config = transformers.MarianConfig(
        vocab_size=VOCAB, d_model=D_MODEL, encoder_layers=ENCODER, decoder_layers=DECODER,
        encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, encoder_ffn_dim=D_FF, decoder_ffn_dim=D_FF,
        activation_function="relu", scale_embedding=True, max_position_embeddings=POSITIONS, pad_token_id=PAD,
        eos_token_id=EOS, decoder_start_token_id=BOS, share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True, attn_implementation="eager",
    )  # fmt: skip
    other = transformers.MarianMTModel(config).double().eval()
    other.model.shared.weight.copy_(model.source_embedding.weight)
    for embedding in (other.model.encoder.embed_positions, other.model.decoder.embed_positions):
        embedding.weight.copy_(sinusoids(POSITIONS, D_MODEL))
    for mine, theirs in zip(model.encoder, other.model.encoder.layers, strict=True):
        copy_common(mine, theirs)
    for mine, theirs in zip(model.decoder, other.model.decoder.layers, strict=True):
        copy_common(mine, theirs)
        copy_attention(mine.cross_attention, theirs.encoder_attn)
        copy(mine.norm_cross, theirs.encoder_attn_layer_norm)
    for tied in (other.model.encoder.embed_tokens, other.model.decoder.embed_tokens, other.lm_head):
        assert torch.equal(tied.weight, model.source_embedding.weight)
    trained = [parameter for name, parameter in other.named_parameters() if "embed_positions" not in name]
    assert sum(p.numel() for p in trained) == sum(p.numel() for p in model.parameters())  # none left uncopied
    return other


def padded(lengths: list[int], first: list[int], last: list[int], seed: int) -> Tensor:
    """Random tokens between `first` and `last`, then PAD up to the longest."""
    generator = torch.Generator().manual_seed(seed)
    rows = [[*first, *torch.randint(4, VOCAB, (n,), generator=generator).tolist(), *last] for n in lengths]
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


@torch.no_grad()
def test_logits_and_every_attention_map_equal_marians():
    model = ours()
    other = marian(model)
    src = padded([4, 9, 1, 6, 9], [], [EOS], seed=1)  # [5,10]
    tgt_in = padded([5, 2, 7, 12, 0], [BOS], [], seed=2)  # [5,13]
    recorder = Recorder()
    logits = model(src, tgt_in, recorder=recorder)
    theirs = other(
        input_ids=src, attention_mask=(src != PAD).long(), decoder_input_ids=tgt_in,
        decoder_attention_mask=(tgt_in != PAD).long(), output_attentions=True, use_cache=False,
    )  # fmt: skip
    real = tgt_in != PAD
    torch.testing.assert_close(logits[real], theirs.logits[real], atol=1e-9, rtol=1e-9)
    assert logits[real].std() > 0.5  # nothing is equal by being flat

    maps = {site: [record.weights for record in recorder.records if record.site is site] for site in Site}
    for site, their_maps, queries in (
        (Site.encoder, theirs.encoder_attentions, src != PAD),
        (Site.decoder, theirs.decoder_attentions, real),
        (Site.cross, theirs.cross_attentions, real),
    ):
        for mine, other_map in zip(maps[site], their_maps, strict=True):
            mine, other_map = mine.transpose(1, 2)[queries], other_map.transpose(1, 2)[queries]
            torch.testing.assert_close(mine, other_map, atol=1e-9, rtol=1e-9)


@torch.no_grad()
def test_cached_steps_equal_marians_full_forward():
    model = ours()
    other = marian(model)
    src = padded([4, 9, 1, 6, 9], [], [EOS], seed=1)
    tgt_in = padded([12] * 5, [BOS], [], seed=2)
    src_keep = src != PAD
    theirs = other(
        input_ids=src, attention_mask=src_keep.long(), decoder_input_ids=tgt_in, use_cache=False
    ).logits
    state = model.start(model.encode(src, src_keep), src_keep)
    for t, token in enumerate(tgt_in.T):
        torch.testing.assert_close(state.step(token), theirs[:, t], atol=1e-9, rtol=1e-9)
