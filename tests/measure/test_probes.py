import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from arms import ARMS, CORRECT
from small_model import padded, random_batch, record_of, small_model
from torch import Tensor

from attnlab.config import Mask, Scale, Site
from attnlab.data.tokenizer import PAD
from attnlab.measure import probe
from attnlab.measure.gradients import parameter_norms
from attnlab.measure.maps import sentence_maps
from attnlab.measure.probes import attention_metrics, row_statistics
from attnlab.model.attention import attend, attention_weights
from attnlab.model.recorder import AttentionRecord, Recorder

GLOSSARY = Path(__file__).parents[2] / "docs" / "metrics.md"


def all_rows(record: AttentionRecord) -> Tensor:
    batch, _, queries, _ = record.scores.shape
    return torch.ones(batch, queries, dtype=torch.bool)


def metrics_of(*records: AttentionRecord) -> dict[str, float]:
    """Metrics of hand-made records without padding."""
    return attention_metrics(list(records), all_rows(records[0]), all_rows(records[0]))


def softmax_record(scores: Tensor, **rest: object) -> AttentionRecord:
    return record_of(scores, scores.softmax(dim=-1), **rest)


# ---------------------------------------------------------------------------------------------- one row


@pytest.mark.parametrize("n", [2, 7, 30])
def test_R16_uniform_row_has_entropy_log_n(n: int) -> None:
    metrics = metrics_of(softmax_record(torch.zeros(2, 3, 4, n)))
    assert metrics["probe/entropy/decoder"] == pytest.approx(math.log(n), abs=1e-6)
    assert metrics["probe/entropy_normalized/decoder"] == pytest.approx(1, abs=1e-6)
    assert metrics["probe/participation/decoder"] == pytest.approx(n)
    assert metrics["probe/max_weight/decoder"] == pytest.approx(1 / n)
    assert metrics["probe/jacobian_trace/decoder"] == pytest.approx(1 - 1 / n)
    assert metrics["probe/jacobian_frobenius_squared/decoder"] == pytest.approx((n - 1) / n**2)
    assert metrics["probe/keys/decoder"] == n


def test_R16_one_hot_row_is_exactly_zero() -> None:
    weights = torch.zeros(1, 2, 3, 5)
    weights[..., 2] = 1
    metrics = metrics_of(record_of(torch.zeros_like(weights), weights))
    for name in ("entropy", "entropy_normalized", "entropy_p90", "jacobian_trace", "jacobian_frobenius"):
        assert metrics[f"probe/{name}/decoder"] == 0
    assert metrics["probe/participation/decoder"] == 1
    assert metrics["probe/jacobian_dead/decoder"] == 1


def test_jacobian_is_that_of_autograd() -> None:
    scores = torch.randn(1, 1, 20, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 2
    jacobians = [torch.autograd.functional.jacobian(lambda s: s.softmax(-1), row) for row in scores[0, 0]]
    record = softmax_record(scores)
    rows = row_statistics(record, all_rows(record))
    for name, oracle in {
        "jacobian_trace": lambda j: j.trace(),
        "jacobian_frobenius": lambda j: j.norm(),
        "jacobian_frobenius_squared": lambda j: j.square().sum(),
        "jacobian_max": lambda j: j.abs().max(),
    }.items():
        torch.testing.assert_close(rows[name].values[0, 0], torch.stack([oracle(j) for j in jacobians]))


def test_saturated_fp32_row_keeps_its_small_jacobian() -> None:
    """1 - p of a saturated fp32 row is rounding; the other weights are not, and they are what is left."""
    scores = torch.tensor([14.0, 0.0, 0.0])
    exact = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), scores.double())
    record = softmax_record(scores.view(1, 1, 1, 3))
    rows = row_statistics(record, all_rows(record))
    assert rows["jacobian_trace"].values.item() == pytest.approx(exact.trace().item(), rel=1e-4)
    assert rows["jacobian_frobenius"].values.item() == pytest.approx(exact.norm().item(), rel=1e-2)


# An independent simulation: 200 000 softmax rows over n logits N(0, sigma^2), standard errors below 1%
TABLED = ("entropy", "max_weight", "jacobian_max", "jacobian_trace", "jacobian_frobenius", "jacobian_dead")
TABLE = [  # n, sigma, and the quantities above
    (10, 1.0, (1.923, 0.321, 0.206, 0.805, 0.348, 0.0)),
    (10, 4.0, (0.714, 0.738, 0.152, 0.363, 0.259, 0.017)),
    (10, 22.6, (0.116, 0.953, 0.033, 0.068, 0.064, 0.602)),
    (14, 8.0, (0.388, 0.851, 0.095, 0.210, 0.171, 0.163)),
    (64, 8.0, (0.574, 0.794, 0.122, 0.287, 0.210, 0.083)),
]


@pytest.mark.parametrize(("n", "sigma", "expected"), TABLE)
def test_gaussian_logits_give_the_simulated_table(n: int, sigma: float, expected: tuple[float, ...]) -> None:
    scores = torch.randn(40_000, 1, 1, n, generator=torch.Generator().manual_seed(n)) * sigma
    metrics = metrics_of(softmax_record(scores, site=Site.cross))
    for name, value in zip(TABLED, expected, strict=True):
        assert metrics[f"probe/{name}/cross"] == pytest.approx(value, rel=0.025, abs=0.003), name


def test_R10_logit_std_of_gaussian_queries_and_keys() -> None:
    generator = torch.Generator().manual_seed(0)
    for d_k in (4, 64, 512):
        q, k = (torch.randn(400, 1, 10, d_k, generator=generator) for _ in range(2))
        for scale, expected in ((1.0, math.sqrt(d_k)), (None, 1.0)):
            attended = attend(q, k, k, scale=scale)
            metrics = metrics_of(record_of(attended.scores, attended.weights))
            assert metrics["probe/logit_std/decoder"] == pytest.approx(expected, rel=0.03)


def test_logit_std_is_over_allowed_keys_and_logit_max_too() -> None:
    scores = torch.tensor([[5.0, 99, 99, 99], [1, 4, -99, 99], [1, -7, 4, 99]])[None, None]
    keep = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]], dtype=torch.bool)
    metrics = metrics_of(record_of(scores, attention_weights(scores, keep, None, Mask.before_softmax), keep))
    variances = [np.var([1, 4], ddof=1), np.var([1, -7, 4], ddof=1)]  # the first row has one key: no spread
    assert metrics["probe/logit_std/decoder"] == pytest.approx(math.sqrt(np.mean(variances)))
    assert metrics["probe/logit_max/decoder"] == 7


# ---------------------------------------------------------------------------------------------- masks


@pytest.mark.parametrize(
    ("mask", "fill", "entropy", "entropy_all", "row_sum", "future_mass"),
    [
        (Mask.before_softmax, -math.inf, math.log(3), math.log(3), 1.0, 0.0),
        (Mask.after_softmax, -math.inf, math.log(3), math.log(3), 0.5, 0.0),
        (Mask.after_softmax_renormalized, -math.inf, math.log(3), math.log(3), 1.0, 0.0),
        (Mask.before_softmax, 0.0, math.log(3), math.log(6), 1.0, 0.5),
        (Mask.none, -math.inf, math.log(3), math.log(6), 1.0, 0.5),
        (Mask.inverted, -math.inf, None, math.log(3), 1.0, 1.0),
    ],
)
def test_R07_six_keys_three_allowed(
    mask: Mask, fill: float, entropy: float | None, entropy_all: float, row_sum: float, future_mass: float
) -> None:
    scores, keep = torch.zeros(1, 1, 1, 6), torch.tensor([[True] * 3 + [False] * 3])
    metrics = metrics_of(record_of(scores, attention_weights(scores, keep, None, mask, fill), keep))
    expected = {
        "entropy_all": entropy_all, "row_sum": row_sum, "future_mass": future_mass, "empty_rows": 0.0, "rows": 0.0
    }  # fmt: skip
    if entropy is not None:
        expected |= {"entropy": entropy, "max_weight": 1 / 3, "entropy_normalized": 1.0, "rows": 1.0}
    for name, value in expected.items():
        assert metrics[f"probe/{name}/decoder"] == pytest.approx(value, abs=1e-6), name
    if entropy is None:  # nothing on the allowed keys: no row, no number
        assert "probe/entropy/decoder" not in metrics
        assert "probe/entropy_p50/decoder" not in metrics


def test_after_softmax_rows_split_into_entropy_and_row_sum() -> None:
    """The row sum is m = exp(lse_causal - lse_full), and -sum w log w = m (H - log m)."""
    scores = torch.randn(3, 2, 9, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 3
    keep = torch.ones(9, 9, dtype=torch.bool).tril()
    record = record_of(scores, attention_weights(scores, keep, None, Mask.after_softmax), keep)
    rows = row_statistics(record, all_rows(record))
    m = (scores.masked_fill(~keep, -math.inf).logsumexp(-1) - scores.logsumexp(-1)).exp()
    torch.testing.assert_close(rows["row_sum"].values, m)
    own = torch.special.entr(record.weights).sum(-1)
    torch.testing.assert_close(own, m * (rows["entropy"].values - m.log()))


def test_R02_row_without_a_key_is_counted_and_left_out() -> None:
    scores = torch.zeros(1, 1, 2, 4)
    keep = torch.tensor([[False] * 4, [True] * 4])
    weights = attention_weights(scores, keep, None, Mask.before_softmax)
    metrics = metrics_of(record_of(scores, weights, keep))
    assert metrics["probe/empty_rows/decoder"] == 0.5
    assert metrics["probe/rows/decoder"] == 1
    assert metrics["probe/entropy/decoder"] == pytest.approx(math.log(4), abs=1e-6)
    assert metrics["probe/row_sum/decoder"] == 0.5


def test_R43_nan_weights_show() -> None:
    weights = torch.full((1, 2, 3, 4), 0.25)
    weights[0, 1, 2, 0] = math.nan
    metrics = metrics_of(record_of(weights, weights))
    for name in ("entropy", "max_weight", "jacobian_trace", "jacobian_dead", "logit_std", "row_sum"):
        assert math.isnan(metrics[f"probe/{name}/decoder"]), name
    assert math.isnan(metrics["probe/entropy_p50/decoder"])
    assert metrics["probe/max_weight/decoder/layer1/head1"] == 0.25


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_R43_a_diverged_model_gives_nan_and_no_exception(broken: float) -> None:
    model = small_model()
    with torch.no_grad():
        model.decoder[1].self_attention.w_q.weight.fill_(broken)
    metrics = probe(model, random_batch([(5, 7), (9, 4)]), leakage=True)
    for name in ("entropy/decoder", "entropy_p50/decoder", "grad_q_rms/decoder", "leak/logits_max"):
        assert math.isnan(metrics[f"probe/{name}"]), name
    assert math.isfinite(metrics["probe/entropy/encoder"])


# ---------------------------------------------------------------------------------------------- means


def test_means_are_over_rows_then_heads_then_layers() -> None:
    """Layer 1: head 1 one-hot, head 2 with uniform rows of 4; layer 2: head 1 undefined (future alone), head
    2 uniform."""
    keep = torch.tensor([[True] * 4 + [False]] * 3)
    one_hot, uniform, future = torch.zeros(3, 5), torch.zeros(3, 5), torch.zeros(3, 5)
    one_hot[:, 0], uniform[:, :4], future[:, 4] = 1, 0.25, 1
    layers = [torch.stack([one_hot, uniform])[None], torch.stack([future, uniform])[None]]
    metrics = metrics_of(
        *(record_of(torch.zeros(1, 2, 3, 5), weights, keep, layer=i) for i, weights in enumerate(layers, 1))
    )
    mean_of_layers = (math.log(4) / 2 + math.log(4)) / 2  # not the 2/3 log 4 of three equal heads
    assert metrics["probe/entropy/decoder"] == pytest.approx(mean_of_layers)
    assert metrics["probe/rows/decoder"] == pytest.approx((3 + 3 + 0 + 3) / 4)
    assert metrics["probe/future_mass/decoder"] == 0.25
    assert metrics["probe/future_mass/decoder/layer2/head1"] == 1
    assert "probe/max_weight/decoder/layer2/head1" not in metrics
    entropies = [0.0] * 3 + [math.log(4)] * 6
    for name, q in (("p10", 0.1), ("p50", 0.5), ("p90", 0.9)):
        assert metrics[f"probe/entropy_{name}/decoder"] == pytest.approx(np.quantile(entropies, q))


def test_padding_queries_do_not_count() -> None:
    weights = torch.tensor([[0.5, 0.5], [1.0, 0.0]])[None, None]
    real_queries = torch.tensor([[True, False]])
    record = record_of(weights, weights, site=Site.cross)
    metrics = attention_metrics([record], torch.ones(1, 2, dtype=torch.bool), real_queries)
    assert metrics["probe/max_weight/cross"] == 0.5
    assert metrics["probe/rows/cross"] == 1


# ---------------------------------------------------------------------------------------------- real models


@pytest.mark.parametrize("arm", ["correct", "no_scale", "after_softmax", "zero_fill", "no_mask"])
def test_R15_padding_changes_nothing(arm: str) -> None:
    model, batch = small_model(ARMS[arm]), random_batch([(5, 5)])
    alone, in_padding = probe(model, batch, leakage=True), probe(model, padded(batch, 50), leakage=True)
    assert alone.keys() == in_padding.keys()
    for name, value in alone.items():
        assert in_padding[name] == pytest.approx(value, rel=1e-4, abs=1e-6), name


def test_R14_dropout_has_no_part_in_it() -> None:
    model, batch = small_model(dropout=0.3), random_batch([(5, 7), (9, 4)])
    recorder = Recorder()
    model.train()(batch.src, batch.tgt_in, recorder=recorder)  # records hold weights from before dropout
    for record in recorder.records:
        sums = record.weights.sum(-1)
        torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-6, rtol=0)
    assert probe(model.train(), batch, leakage=True) == probe(model.eval(), batch, leakage=True)


@pytest.mark.parametrize("heads", [1, 2, 4, 8, 16])
def test_R09_scale_changes_logit_std_by_sqrt_d_k_and_nothing_of_the_row_sums(heads: int) -> None:
    batch = random_batch([(9, 8), (6, 8)])
    scaled, unscaled = (
        probe(small_model(arm, heads=heads, layers=1), batch, leakage=False)
        for arm in (CORRECT, replace(CORRECT, scale=Scale.none))
    )
    assert unscaled["probe/logit_std/encoder"] == pytest.approx(
        math.sqrt(32 / heads) * scaled["probe/logit_std/encoder"], rel=1e-5
    )
    for site in Site:
        assert scaled[f"probe/row_sum/{site}"] == pytest.approx(1, abs=1e-6)
        assert unscaled[f"probe/row_sum/{site}"] == pytest.approx(1, abs=1e-6)


def test_R16_bf16_model_is_measured_in_high_precision() -> None:
    """Queries of zero: every row uniform, so the decoder's mean entropy is that of log 2 .. log n, in any
    precision."""
    model, batch = small_model().bfloat16(), random_batch([(6, 12)])
    for layer in model.decoder:
        torch.nn.init.zeros_(layer.self_attention.w_q.weight)
    metrics = probe(model, batch, leakage=False)
    assert metrics["probe/entropy/decoder"] == pytest.approx(np.log(np.arange(2, 14)).mean(), abs=1e-5)


def test_autocast_of_the_caller_does_not_reach_the_probe() -> None:
    model, batch = small_model(), random_batch([(6, 12), (4, 4)])
    outside = probe(model, batch, leakage=True)
    with torch.autocast("cpu", torch.bfloat16):
        assert probe(model, batch, leakage=True) == outside
    with torch.no_grad():
        assert probe(model, batch, leakage=True) == outside


def test_an_arm_in_one_head_shows_in_that_head() -> None:
    arm = replace(CORRECT, mask=Mask.none, where=replace(CORRECT.where, sites=[Site.decoder], heads=[3]))
    metrics = probe(small_model(arm), random_batch([(5, 9), (5, 9)]), leakage=True)
    for layer in (1, 2):
        mass = [metrics[f"probe/future_mass/decoder/layer{layer}/head{head}"] for head in (1, 2, 3, 4)]
        assert mass[2] > 0.2
        assert mass[:2] + mass[3:] == [0, 0, 0]
    assert metrics["probe/leak/logits"] > 0


# ---------------------------------------------------------------------------------------------- no trace


def train(probes: bool) -> tuple[dict[str, Tensor], object, Tensor]:
    """Six steps with dropout, with or without a look after each: weights, dropout state and torch's random
    state."""
    torch.manual_seed(0)
    model, batch = small_model(), random_batch([(5, 7), (9, 4)])
    looked_at = random_batch([(80, 8), (2, 3)], seed=1)  # longer than what is trained on
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(6):
        optimizer.zero_grad()
        logits = model(batch.src, batch.tgt_in).flatten(0, 1)
        F.cross_entropy(logits, batch.tgt_out.flatten(), ignore_index=PAD).backward()
        if probes:
            before = {name: p.grad.clone() for name, p in model.named_parameters()}
            assert probe(model, looked_at, leakage=True)
            parameter_norms(model)
            sentence_maps(model, looked_at, 0, lambda ids: [str(i) for i in ids])
            assert all(torch.equal(p.grad, before[name]) for name, p in model.named_parameters())
        optimizer.step()
        if probes:
            optimizer.zero_grad(set_to_none=True)
            probe(model, looked_at, leakage=True)
            assert all(p.grad is None for p in model.parameters())
    return model.state_dict(), model.stream.state(), torch.get_rng_state()


def test_training_with_probes_equals_training_without_bit_for_bit() -> None:
    weights, dropout, rng = train(probes=True)
    other_weights, other_dropout, other_rng = train(probes=False)
    assert all(torch.equal(weights[name], other_weights[name]) for name in weights)
    assert dropout == other_dropout
    assert torch.equal(rng, other_rng)


def test_leakage_is_measured_on_request() -> None:
    model, batch = small_model(), random_batch([(5, 7)])
    without, both = (probe(model, batch, leakage=leakage) for leakage in (False, True))
    assert {name for name in both if name not in without} == {
        "probe/leak/logits", "probe/leak/logits_max", "probe/leak/gradient"
    }  # fmt: skip


def test_modes_of_single_modules_come_back() -> None:
    model, batch = small_model(), random_batch([(5, 7)])
    model.decoder[0].eval()
    before = [module.training for module in model.modules()]
    probe(model, batch, leakage=True)
    assert [module.training for module in model.modules()] == before


# ---------------------------------------------------------------------------------------------- glossary and maps


def glossary_patterns() -> list[re.Pattern[str]]:
    """The names of docs/metrics.md: `code` in the first column of a table, <word> stands for one part of a
    name."""
    lines = GLOSSARY.read_text(encoding="utf-8").splitlines()
    first_column = " ".join(line.split("|")[1] for line in lines if line.startswith("|"))
    names = re.findall(r"`([a-z]+/[^`]+)`", first_column)
    return [re.compile(re.sub(r"<[a-z]+>", "[A-Za-z0-9_]+", name)) for name in names]


@pytest.mark.parametrize("arm", sorted(ARMS))
def test_every_name_is_in_the_glossary(arm: str) -> None:
    model, batch, patterns = small_model(ARMS[arm]), random_batch([(5, 7), (9, 4)]), glossary_patterns()
    model(batch.src, batch.tgt_in).sum().backward()
    names = probe(model, batch, leakage=True).keys() | parameter_norms(model).keys()
    assert [name for name in sorted(names) if not any(pattern.fullmatch(name) for pattern in patterns)] == []


@pytest.mark.parametrize(("sentence", "src", "tgt"), [(0, 6, 8), (1, 10, 5)])
def test_maps_are_the_weights_of_one_sentence_without_padding(sentence: int, src: int, tgt: int) -> None:
    model, batch = small_model(), random_batch([(5, 7), (9, 4)])
    maps = {
        one.name: one for one in sentence_maps(model, batch, sentence, lambda ids: [f"<{i}>" for i in ids])
    }
    assert len(maps) == 3 * 2 * 4
    recorder = Recorder()
    model.eval()(batch.src, batch.tgt_in, recorder=recorder)
    for record in recorder.records:
        for head in (1, 4):
            one = maps[f"{record.site}/layer{record.layer}/head{head}"]
            queries = src if record.site is Site.encoder else tgt
            keys = tgt if record.site is Site.decoder else src
            assert one.weights.shape == (queries, keys) == (len(one.queries), len(one.keys))
            expected = record.weights[sentence, head - 1, :queries, :keys].detach().numpy()
            np.testing.assert_allclose(one.weights, expected, atol=1e-6)
    assert maps["cross/layer1/head1"].queries[0] == "<2>"  # BOS
    assert maps["cross/layer1/head1"].keys[-1] == "<3>"  # EOS
