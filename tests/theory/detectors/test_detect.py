"""`detect` on attentions that people write: right ones raise no alarm, wrong ones are named."""

import callables
import pytest
import torch
from torch import nn

from attnlab.errors import UserError
from attnlab.theory import Check, MaskStyle, Mistake, Seen, Subject, detect


@pytest.mark.parametrize(
    ("attention", "arguments"),
    [
        (callables.by_hand, {}), (callables.batched, {}), (callables.numpy_only, {}), (callables.sdpa, {}),
        (callables.always_causal, {"causal": True}), (callables.drop_convention, {"mask": "drop"}),
        (callables.additive_mask, {"mask": MaskStyle.additive}), (callables.sdpa, {"dtype": torch.float32}),
        (callables.by_hand, {"seed": 5}),
    ],
)  # fmt: skip
def test_right_functions_raise_no_alarm(attention, arguments):
    report = detect(attention, **arguments)
    assert report.ok
    assert report.mistakes == []
    run = {finding.check for finding in report.findings if finding.alarm is not None}
    assert {Check.causality, Check.prefix, Check.row_sums, Check.scale, Check.library} <= run
    assert "no mistake found" in str(report)
    assert "ALARM" not in str(report)


@pytest.mark.parametrize(
    ("attention", "mistake"),
    [
        (callables.unscaled, Mistake.no_scale), (callables.by_half, Mistake.other_scale),
        (callables.masked_after, Mistake.after_softmax), (callables.zero_filled, Mistake.finite_fill),
        (callables.multiplied_mask, Mistake.finite_fill), (callables.mask_forgotten, Mistake.no_mask),
        (callables.drop_convention, Mistake.inverted_mask), (callables.over_queries, Mistake.softmax_axis),
        (callables.no_maximum, Mistake.numerics),
    ],
)  # fmt: skip
@pytest.mark.parametrize("seed", [0, 1])
def test_wrong_functions_are_named(attention, mistake, seed):
    report = detect(attention, seed=seed)
    assert report.mistakes == [mistake]
    text = str(report)
    assert mistake.value in text
    assert "fix" in text
    assert "ALARM" in text


def test_a_mask_that_is_one_too_late_is_named():
    def attention(q, k, v, mask=None):
        if mask is not None:
            shifted = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril(1)
            mask = shifted if mask.ndim == 2 else mask
        return callables.sdpa(q, k, v, mask)

    report = detect(attention)
    assert report.mistakes == [Mistake.off_by_one]
    assert "6 of 21 future cells" in str(report)


@pytest.mark.parametrize("fill", [-20.0, 0.0])
def test_R13_padding_with_a_finite_fill_is_caught(fill):
    """The future is hidden rightly; padding keys only get a small score."""

    def forward(x, keep, real):
        scores = x @ x.transpose(-2, -1) / 8**0.5
        if real is not None:
            scores = scores.masked_fill(~real[:, None], fill)
        if keep is not None:
            scores = scores.masked_fill(~keep, -torch.inf)
        weights = torch.softmax(scores, dim=-1)
        return Seen(weights @ x, weights)

    report = detect(Subject("mine", 8, forward, takes_keep=True, takes_real=True))
    assert report.mistakes == [Mistake.padding]
    assert report.alarms == [Check.padding]


def test_two_mistakes_are_both_named():
    def attention(q, k, v, mask=None):
        return callables.masked_after(q * q.shape[-1] ** 0.5, k, v, mask)

    assert detect(attention).mistakes == [Mistake.after_softmax, Mistake.no_scale]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_R11_multihead_attention(bias, batch_first):
    block = nn.MultiheadAttention(12, 3, dropout=0.3, bias=bias, batch_first=batch_first)
    before = {name: value.clone() for name, value in block.state_dict().items()}
    report = detect(block)
    assert report.ok
    assert all(finding.alarm is False for finding in report.findings)
    assert block.training
    assert block.batch_first == batch_first
    assert block.in_proj_weight.dtype is torch.float32
    assert all(torch.equal(before[name], value) for name, value in block.state_dict().items())


def test_a_subclass_with_a_mistake_is_caught():
    class Swapped(nn.MultiheadAttention):
        """Hands the mask on without the complement."""

        def forward(self, query, key, value, attn_mask=None, **more):
            return super().forward(
                query, key, value, attn_mask=None if attn_mask is None else ~attn_mask, **more
            )

    report = detect(Swapped(12, 3, batch_first=True))
    assert Mistake.inverted_mask in report.mistakes


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_marian_block(implementation, dropout):
    transformers = pytest.importorskip("transformers")
    from transformers.models.marian.modeling_marian import MarianAttention

    config = transformers.MarianConfig(d_model=12, attn_implementation=implementation)
    block = MarianAttention(12, 3, dropout=dropout, config=config)
    report = detect(block)
    assert report.ok
    assert all(finding.alarm is False for finding in report.findings)
    block.scaling = 1.0
    assert detect(block).mistakes == [Mistake.no_scale]


@pytest.mark.parametrize(
    ("mistake", "expected"),
    [
        ("", []), ("after", [Mistake.after_softmax]), ("no_mask", [Mistake.leak]), ("merge", [Mistake.wrong_merge]),
        ("split", [Mistake.wrong_split]), ("length", [Mistake.length]),
    ],
)  # fmt: skip
def test_blocks_of_tokens(mistake, expected):
    """x -> y, causal inside, no weights: fewer checks apply, and the mistake is told from the leak's rank."""
    report = detect(callables.TokensIn(mistake), width=16, heads=4, causal=True)
    assert report.mistakes == expected
    not_applicable = {finding.check for finding in report.findings if finding.alarm is None}
    assert not_applicable == {Check.permutation, Check.padding, Check.row_sums, Check.scale, Check.library}


def test_a_block_that_is_not_told_to_hide_the_future_is_checked_for_its_axes():
    class Bidirectional(callables.TokensIn):
        def __init__(self, mistake=""):
            super().__init__("no_mask")
            self.wrong = mistake

        def forward(self, x):
            y = super().forward(x)
            return y.flip(1) if self.wrong else y

    class WrongSplit(nn.Module):
        """In an encoder nothing leaks, and only the permutation shows the wrong reshape."""

        def forward(self, x):
            heads = x.reshape(len(x), 4, x.shape[1], 4)
            return callables.sdpa(heads, heads, heads).reshape(x.shape)

    assert detect(WrongSplit(), width=16, heads=4).mistakes == [Mistake.wrong_split]
    assert detect(Bidirectional(), width=16).ok
    report = detect(Bidirectional("flip"), width=16, heads=4)
    assert report.mistakes == [Mistake.mixed_tokens]
    assert report.alarms == [Check.permutation]


def test_positions_are_no_mistake_once_they_are_named():
    class WithPositions(callables.TokensIn):
        def forward(self, x):
            self.mistake = "no_mask"
            return super().forward(x + self.positions[: x.shape[1]])

    assert not detect(WithPositions(), width=16).ok
    assert detect(WithPositions(), width=16, positions=True).ok


@pytest.mark.parametrize(("wrong", "mistakes"), [(False, []), (True, [Mistake.wrong_merge])])
def test_a_block_of_query_key_and_value(wrong, mistakes):
    class Tutorial(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))

        def forward(self, query, key, value, mask=None):
            q, k, v = (
                layer(x).view(*x.shape[:2], 4, 4).transpose(1, 2)
                for layer, x in zip(self.layers, (query, key, value), strict=False)
            )
            out = callables.sdpa(q, k, v, mask)
            out = out if wrong else out.transpose(1, 2)
            return self.layers[3](out.reshape(query.shape))

    assert detect(Tutorial(), width=16, heads=4).mistakes == mistakes


def test_a_subject_of_one_s_own():
    subject = Subject("mine", 8, lambda x, keep, real: Seen(x * 2, None), takes_keep=True)
    assert detect(subject).ok


@pytest.mark.parametrize(
    ("attention", "arguments", "message"),
    [
        (3, {}, "int"), (callables.sdpa, {"mask": "both"}, "keep, drop, additive, none"),
        (lambda a, b: a, {}, "allowed: .q, k, v"), (lambda x: x, {}, "width"),
        (torch.nn.functional.scaled_dot_product_attention, {}, "lambda"),
        (callables.random_dropout, {}, "two equal calls"),
        (lambda q, k, v: q[..., :2], {}, "shape"), (lambda x: x[:, :1], {"width": 4}, "same shape"),
        (lambda x: x @ x, {"width": 4}, "RuntimeError"),
        (nn.MultiheadAttention(12, 3, kdim=5), {}, "kdim"),
    ],
)  # fmt: skip
def test_what_cannot_be_checked_is_one_sentence(attention, arguments, message):
    with pytest.raises(UserError, match=message) as caught:
        detect(attention, **arguments)
    assert "\n" not in str(caught.value)
    assert "allowed" in str(caught.value)


def test_the_global_random_stream_is_left_alone():
    before = torch.random.get_rng_state()
    detect(callables.sdpa)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_the_report_as_plain_values():
    import json

    report = json.loads(json.dumps(detect(callables.unscaled).as_dict()))
    assert report["name"] == "unscaled"
    assert not report["ok"]
    assert report["mistakes"][0]["mistake"] == "no_scale"
    assert report["mistakes"][0]["fix"]
    assert {check["check"] for check in report["checks"]} == {check.value for check in Check}
    (scale,) = (check for check in report["checks"] if check["check"] == "scale")
    assert scale["evidence"]["slope"] == pytest.approx(1)
