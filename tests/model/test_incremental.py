"""Decoding without repeated work against the plain forward pass of each arm, one unpadded sentence at a time."""

from dataclasses import replace

import pytest
import torch
from measure.arms import ARMS, CORRECT, NO_LEAK, WRONG_MASK, random_sentences, small_model

from attnlab.config import Norm, Site, WhereConfig
from attnlab.data.tokenizer import BOS, EOS
from attnlab.model.fast import LANES
from attnlab.model.incremental import DecoderState, JoinedDecoder, Source, decode_prefix

SOME_HEADS = {
    name: replace(ARMS[name], where=WhereConfig(sites=[*Site], layers=[1, 3], heads=[2]))
    for name in ("no_scale", "after_softmax")
}  # fmt: skip
TARGETS = 37  # positions: a cache that holds 16 at first grows twice


def sentences():
    """Sources of lengths 2 to 8, several of some, in no order, and one of more than two registers."""
    long = [5 + i % 20 for i in range(40)]
    return [torch.tensor([*ids, EOS]) for ids in (*random_sentences(8, longest=7), long)]


def prefixes(count):
    generator = torch.Generator().manual_seed(5)
    prefix = torch.randint(4, 29, (count, TARGETS), generator=generator)
    prefix[:, 0] = BOS
    return prefix


def plain(model, src, prefix):
    """Hidden [B,T,D] of the whole model on each sentence alone, no padding anywhere."""
    return torch.cat([model.hidden(one[None], row[None]) for one, row in zip(src, prefix, strict=True)])


@pytest.mark.parametrize("norm", Norm)
@pytest.mark.parametrize("arm", [*(ARMS | SOME_HEADS)])
@torch.no_grad()
def test_prefixes_of_sources_of_all_lengths_equal_each_sentence_alone(arm, norm):
    model = small_model((ARMS | SOME_HEADS)[arm], norm=norm).double()
    src, prefix = sentences(), prefixes(9)
    source = Source.read(model, src)
    for length in (1, 2, 7):
        expected = plain(model, src, prefix[:, :length])
        whole = decode_prefix(model, prefix[:, :length], source)
        last = decode_prefix(model, prefix[:, :length], source, last_only=True)
        torch.testing.assert_close(whole, expected, atol=1e-12, rtol=0)
        torch.testing.assert_close(last, expected[:, -1:], atol=1e-12, rtol=0)


@pytest.mark.parametrize("norm", Norm)
@pytest.mark.parametrize("arm", [*(NO_LEAK | WRONG_MASK | SOME_HEADS)])
@torch.no_grad()
def test_R04_cached_steps_of_sources_of_all_lengths_equal_the_right_mask(arm, norm):
    factors = (ARMS | SOME_HEADS)[arm]
    model = small_model(factors, norm=norm).double()
    right = small_model(replace(factors, mask=CORRECT.mask, mask_fill=CORRECT.mask_fill), norm=norm).double()
    right.load_state_dict(model.state_dict())
    src, prefix = sentences(), prefixes(9)
    expected = right.project(plain(right, src, prefix))
    state, rows = DecoderState(JoinedDecoder(model), Source.read(model, src)), torch.arange(9)
    for t in range(TARGETS):
        if t in (3, 17, 33):  # sentences leave, others change places or are doubled, as in a beam
            keep = torch.tensor([4, 0, len(rows) - 1, 2, 1])
            state.reorder(keep)
            rows = rows[keep]
        torch.testing.assert_close(state.step(prefix[rows, t]), expected[rows, t], atol=1e-9, rtol=0)


@torch.no_grad()
def test_sources_are_padded_to_whole_registers_and_rows_are_taken_in_order():
    model = small_model().double()
    full = [torch.tensor([*range(5, 5 + LANES - 1), EOS]) for _ in range(2)]
    even = Source.read(model, full)
    assert even.real is None
    assert even.keys[0].shape[2] == LANES
    mixed = Source.read(model, [torch.tensor([5, EOS]), full[0], torch.tensor([5, 6, EOS])])
    assert mixed.real[:, 0, 0].sum(dim=-1).tolist() == [2, LANES, 3]
    assert mixed.real[0, 0, 0, :2].all()
    assert mixed.keys[0].shape[2] == LANES
    turned = mixed.rows([1, 0])
    assert turned.real[:, 0, 0].sum(dim=-1).tolist() == [LANES, 2]
    assert torch.equal(turned.keys[2][0], mixed.keys[2][1])
    torch.testing.assert_close(mixed.values[1][1], even.values[1][0], atol=1e-12, rtol=0)
    longer = Source.read(model, [torch.tensor([*range(5, 5 + LANES), EOS])])
    assert longer.keys[0].shape[2] == 2 * LANES
    assert longer.real.sum() == LANES + 1
