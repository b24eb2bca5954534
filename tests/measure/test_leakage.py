import pytest
import torch
from arms import ARMS
from small_model import CAUSAL_ARMS, LEAKING_ARMS, VOCABULARY, random_batch, small_model
from torch import Tensor

from attnlab.data.tokenizer import PAD, UNK
from attnlab.measure.leakage import leak_metrics, replace_tokens

EQUAL = [(6, 9), (4, 9), (9, 9)]
UNEQUAL = [(6, 9), (4, 5), (9, 7), (3, 1), (5, 4), (2, 8)]


@pytest.mark.parametrize("lengths", [EQUAL, UNEQUAL])
@pytest.mark.parametrize("arm", sorted(CAUSAL_ARMS))
def test_R26_causal_decoder_leaks_exactly_nothing(arm: str, lengths: list[tuple[int, int]]) -> None:
    metrics = leak_metrics(small_model(CAUSAL_ARMS[arm]), random_batch(lengths))
    rounding = 1e-5 if arm == "renormalized" else 0.0  # it divides by a sum that has seen the future
    assert metrics.keys() == {"probe/leak/logits", "probe/leak/logits_max", "probe/leak/gradient"}
    assert max(metrics.values()) <= rounding


@pytest.mark.parametrize("lengths", [EQUAL, UNEQUAL])
@pytest.mark.parametrize("arm", sorted(LEAKING_ARMS))
def test_R26_leaking_decoder_shows_in_all_three(arm: str, lengths: list[tuple[int, int]]) -> None:
    metrics = leak_metrics(small_model(LEAKING_ARMS[arm]), random_batch(lengths))
    assert metrics["probe/leak/logits"] > 1e-3
    assert metrics["probe/leak/logits_max"] > 10 * metrics["probe/leak/logits"] / VOCABULARY
    assert metrics["probe/leak/gradient"] > 1e-2


@pytest.mark.parametrize("arm", ["after_softmax", "zero_fill", "wrong_merge"])
@pytest.mark.parametrize(("pieces", "cuts"), [(4, [0, 1, 2, 3]), (3, [0, 0, 1, 2]), (1, [0, 0, 0, 0])])
def test_gradient_share_is_that_of_the_full_jacobian(arm: str, pieces: int, cuts: list[int]) -> None:
    """One target; the cuts are spread evenly over the positions that have a future."""
    model, batch = small_model(ARMS[arm]).eval().double(), random_batch([(6, pieces)])
    real = torch.ones(1, pieces + 1, dtype=torch.bool)
    memory = model.encode(batch.src, batch.src != PAD).detach()

    def losses(x: Tensor) -> Tensor:  # [1,T,D] -> [T]
        logits = model.project(model.decode_embedded(x, memory, batch.src != PAD, real))
        return torch.nn.functional.cross_entropy(logits[0], batch.tgt_out[0], reduction="none")

    x = model.target_embedding(batch.tgt_in).detach()
    norms = torch.autograd.functional.jacobian(losses, x)[:, 0].norm(dim=-1)  # [t,j]
    expected = norms.triu(1)[cuts].sum() / norms[cuts].sum()
    assert leak_metrics(model, batch)["probe/leak/gradient"] == pytest.approx(expected.item(), rel=1e-9)


def test_change_of_logits_is_that_of_one_sentence_after_another() -> None:
    model, batch = small_model(ARMS["zero_fill"]).eval().double(), random_batch([(6, 4), (5, 2)])
    rows, lengths, cuts = [0, 0, 0, 0, 1, 1, 1, 1], [5, 5, 5, 5, 3, 3, 3, 3], [0, 1, 2, 3, 0, 0, 1, 1]
    original = batch.tgt_in[rows]
    position = torch.arange(5)
    future = (position > torch.tensor(cuts)[:, None]) & (position < torch.tensor(lengths)[:, None])
    changed = replace_tokens(original, future, VOCABULARY)
    changes = []
    with torch.no_grad():
        for row, n, t, before, after in zip(rows, lengths, cuts, original, changed, strict=True):
            src = batch.src[row][batch.src[row] != PAD][None]
            changes.append((model(src, after[None, :n]) - model(src, before[None, :n]))[0, : t + 1].abs())
    metrics, change = leak_metrics(model, batch), torch.cat(changes)
    assert metrics["probe/leak/logits"] == pytest.approx(change.mean().item(), rel=1e-9)
    assert metrics["probe/leak/logits_max"] == pytest.approx(change.max().item(), rel=1e-9)


def test_targets_of_one_position_have_no_future() -> None:
    assert leak_metrics(small_model(), random_batch([(6, 0), (3, 0)])) == {}
    assert leak_metrics(small_model(), random_batch([(6, 0), (3, 1)]))["probe/leak/logits"] == 0


def test_replacements_differ_and_are_words_and_come_from_their_own_stream() -> None:
    ids = torch.randint(4, VOCABULARY, (200, 30), generator=torch.Generator().manual_seed(0))
    ids[:, 3], ids[:, -2:] = UNK, PAD
    where = (torch.arange(30) > 2).expand(200, 30) & (ids != PAD)
    state = torch.get_rng_state()
    changed = replace_tokens(ids, where, VOCABULARY)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(changed, replace_tokens(ids, where, VOCABULARY))
    assert bool((changed[where] != ids[where]).all())
    assert torch.equal(changed[~where], ids[~where])
    assert changed[where].min() == 4
    assert changed[where].max() == VOCABULARY - 1
    with pytest.raises(ValueError, match="vocabulary of 5"):
        replace_tokens(ids, where, 5)
