"""The systems as rows, and the batches of those that are not ours."""

import numpy as np
import pytest
import torch
from small_work import job, small

from attnlab.bench.systems import Builtin, chosen, marian, peer, plain, variant
from attnlab.data.batching import Encoded, collate, padding_share
from attnlab.errors import UserError


@pytest.fixture(scope="module")
def text():
    draw = np.random.default_rng(3)
    lengths = draw.integers(1, 30, (200, 2))
    return Encoded(*([draw.integers(4, 50, n).astype(np.int32) for n in side] for side in lengths.T))


@pytest.mark.parametrize("buckets", [False, True])
def test_plain_batches_hold_each_pair_once_within_the_budget(text, buckets):
    cut = list(plain.batches(text, 120, buckets, np.random.default_rng(1)))
    assert sorted(i for batch in cut for i in batch) == list(range(200))
    src, tgt = text.lengths()
    assert all(len(batch) * max(src[batch].max(), tgt[batch].max()) <= 120 for batch in cut)


def test_buckets_leave_less_target_padding(text):
    shares = [
        padding_share(text, list(plain.batches(text, 120, buckets, np.random.default_rng(1))))[1]
        for buckets in (False, True)
    ]
    assert shares[1] < shares[0] / 2


def test_the_plain_model_sees_no_future(tmp_path):
    torch.manual_seed(1)
    model = plain.PlainTransformer(small(tmp_path), 50, 20).eval()
    src, tgt = torch.randint(4, 50, (2, 6)), torch.randint(4, 50, (2, 8))
    changed = tgt.clone()
    changed[:, 5:] = torch.randint(4, 50, (2, 3))
    before, after = model(src, tgt), model(src, changed)
    assert torch.allclose(before[:, :5], after[:, :5], atol=1e-5)
    assert not torch.allclose(before[:, 5:], after[:, 5:], atol=1e-5)


def test_marian_gets_the_ids_of_our_batches(text):
    pairs = [
        {"input_ids": [*text.src[i].tolist(), 3], "labels": [*text.tgt[i].tolist(), 3]} for i in (4, 9, 2)
    ]
    ours, theirs = collate(text, [4, 9, 2]), marian.collate(pairs)
    assert torch.equal(theirs["input_ids"], ours.src)
    assert torch.equal(theirs["decoder_input_ids"], ours.tgt_in)
    assert torch.equal(theirs["labels"].where(theirs["labels"] != -100, 0), ours.tgt_out)
    assert torch.equal(theirs["attention_mask"] == 1, ours.src != 0)


@pytest.mark.slow
def test_marian_trains_and_counts_its_tokens(tmp_path, monkeypatch):
    pytest.importorskip("accelerate")
    sizes = []

    def noted(pairs):
        sizes.append(sum(len(pair["labels"]) for pair in pairs))
        return real(pairs)

    real = marian.collate
    monkeypatch.setattr(marian, "collate", noted)
    values = marian.measure(job(tmp_path, warmup=1, steps=3, settings=("eager",)))
    assert values["tokens_per_step"] == sum(sizes[1:4]) / 3
    first = sizes.copy()
    sizes.clear()
    marian.measure(job(tmp_path, warmup=1, steps=3, settings=("eager",), seed=2))
    assert sizes[:4] != first[:4]  # another round, other batches


def test_a_missing_extra_is_one_sentence():
    with pytest.raises(
        UserError, match=r"no_such_package is not installed, allowed: pip install 'attnlab\[bench\]'"
    ):
        marian.require(("numpy", "no_such_package"))


def test_rows_by_name():
    assert [system.name for system in chosen("all", [])] == [member.value for member in Builtin]
    assert chosen("", []) == []
    ours, eager = chosen("ours,marian_eager", ["seed=2"])
    assert (ours.settings, eager.settings) == (("seed=2",), ("eager",))
    assert variant("wide=model.d_ff=1024 seed=3", ["a=b"]).settings == ("a=b", "model.d_ff=1024", "seed=3")
    assert peer("eole=sh eole.sh --x=1").settings == ("sh eole.sh --x=1",)
