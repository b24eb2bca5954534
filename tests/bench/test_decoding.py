"""Forced lengths by weights alone, and the arithmetic of the tables on decoding and probes."""

from dataclasses import replace

import pytest
import torch
from small_work import job, small
from torch.utils.flop_counter import FlopCounterMode

from attnlab.bench.children import decode_limit, decode_marian, decode_ours, probe_cost
from attnlab.bench.children.decode_ours import never_end
from attnlab.bench.rounds import Spread
from attnlab.bench.sections.probes import share
from attnlab.bench.systems.ours import ready
from attnlab.compose import load
from attnlab.config import Protocol
from attnlab.data.tokenizer import EOS
from attnlab.measure.decode import decode
from attnlab.model.initialise import build


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return ready(job(tmp_path_factory.mktemp("decoding")), 2)


@pytest.mark.parametrize("protocol", list(Protocol))
def test_a_model_that_cannot_end_decodes_exactly_to_the_limit(run, protocol):
    model, sources = run.trainer.model, run.text.test.src
    never_end(model)
    config = replace(run.config.decode, beam=1, max_length_factor=0.0, max_length_extra=16)
    assert {len(pieces) for pieces in decode(model, sources, config, protocol)} == {16}
    natural = replace(config, max_length_factor=1.0, max_length_extra=0)
    assert [len(pieces) for pieces in decode(model, sources, natural, protocol)] == list(map(len, sources))


def test_no_hidden_state_makes_the_end_likely(run):
    model = run.trainer.model
    never_end(model)
    logits = model.project(
        model.decoder_norm(torch.randn(1000, 16, generator=torch.Generator().manual_seed(1)))
    )
    others = torch.cat([logits[:, :EOS], logits[:, EOS + 1 :]], dim=1)
    assert (logits[:, EOS] < others.min(dim=1).values).all()


def test_only_a_pre_ln_model_can_be_kept_from_ending(run, monkeypatch):
    monkeypatch.setattr(run.trainer.model, "decoder_norm", torch.nn.Identity())
    with pytest.raises(ValueError, match="post-LN"):
        never_end(run.trainer.model)


def test_ours_says_a_speed_for_each_protocol_and_kind_of_length(tmp_path):
    values = decode_ours.measure(job(tmp_path))
    names = {
        f"{protocol}/{lengths}" for protocol in ("prefix", "cached") for lengths in ("forced", "natural")
    }
    assert values.keys() == names | {"sentences"}
    assert values["sentences"] == 20
    assert all(value > 0 for value in values.values())


def test_the_limit_of_decoding_has_the_operations_that_torch_counts(tmp_path):
    """Of the model's own forward pass, where a query multiplies all keys and not only those before it."""
    work, sentences, source, target, vocabulary = small(tmp_path), 3, 7, 5, 50
    config = load(work.overrides("fp32", 1, 2))
    model = build(config.model, config.attention, vocabulary, 1).eval()
    draw = torch.Generator().manual_seed(1)
    src, tgt_in = (
        torch.randint(EOS + 1, vocabulary, (sentences, n), generator=draw) for n in (source, target)
    )
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(src, tgt_in)
    future = work.layers * sentences * 2 * 2 * work.d_model * target * (target - 1) // 2
    listed = decode_limit.products(work, sentences, source, target, vocabulary)
    assert sum(product.flops for product in listed) == counter.get_total_flops() - future


@pytest.mark.parametrize("product", [decode_limit.Product(1, 6, 4, 5), decode_limit.Product(4, 1, 7, 2)])
def test_a_product_of_the_limit_is_timed_as_it_is_counted(product):
    call = decode_limit.prepared(product, torch.float32)
    with FlopCounterMode(display=False) as counter:
        call()
    assert counter.get_total_flops() == product.flops


def test_the_limit_of_decoding_is_a_speed(tmp_path):
    values = decode_limit.measure(job(tmp_path))
    assert values["sentences"] == 20
    assert values["cached/forced"] > 0


def test_marian_generates_lengths_that_it_is_forced_to(tmp_path, monkeypatch):
    transformers = pytest.importorskip("transformers")
    made, processors = [], []
    real = transformers.MarianMTModel.generate
    build, prepare = decode_marian.marian.build, transformers.MarianMTModel._get_logits_processor

    def ending(*arguments):
        """A model whose likeliest piece is always the end."""
        model = build(*arguments)
        model.final_logits_bias[0, EOS] = 1e4
        return model

    def listed(*arguments, **settings):
        processors.extend(found := prepare(*arguments, **settings))
        return found

    def noted(self, **settings):
        made.append(real(self, **settings))
        return made[-1]

    monkeypatch.setattr(transformers.MarianMTModel, "generate", noted)
    monkeypatch.setattr(transformers.MarianMTModel, "_get_logits_processor", listed)
    monkeypatch.setattr(decode_marian.marian, "build", ending)
    values = decode_marian.measure(job(tmp_path))
    assert {out.shape[1] for out in made[:2]} == {
        1 + 16
    }  # the start and 16 pieces, in the warm-up and when timed
    assert {*made[0][0].tolist()[1:]} == {EOS}
    assert processors == []  # nothing works on the logits that does not on ours
    assert values.keys() == {"cached/forced", "cached/natural", "sentences"}


def test_a_share_is_a_look_over_the_training_between_two():
    # 3 s each 200 steps of 0.5 s
    assert share([3.0, 6.0], [200.0, 200.0], [0.5, 0.5]) == Spread(4.5, 3.0, 6.0)
    assert share([None], [200.0], [0.5]) is None


def test_looks_happen_in_every_other_block_and_their_time_is_not_training(monkeypatch):
    now = iter([0.0, 1.0, 2.0, 3.0, 10.0, 16.0, 17.0])
    monkeypatch.setattr(probe_cost.time, "perf_counter", lambda: next(now))
    monkeypatch.setattr(probe_cost, "WARM", 0)
    blocks = probe_cost.Blocks(2)  # at 0
    blocks.ended(1)  # at 1
    assert blocks.look("probe", 2, lambda: {"x": 1.0}) == {}  # block 0 looks at nothing
    blocks.ended(2)  # at 2
    blocks.ended(3)  # at 3
    assert blocks.look("probe", 4, lambda: {"x": 1.0}) == {"x": 1.0}  # from 10 to 16
    blocks.ended(4)  # at 17: 14 s, 6 of them for the look
    assert blocks.looks == {"probe": [6.0]}
    assert blocks.blocks == {0: 1.0, 1: 1.0 + 8.0}


def test_probe_costs_come_with_the_default_cadence(tmp_path):
    values = probe_cost.measure(
        job(tmp_path, steps=2, settings=("1", "measure.every=50", "measure.prefix_sentences=2"))
    )
    assert (values["norms_every"], values["probe_every"], values["evaluate_every"]) == (20, 50, 200)
    assert all(values[name] > 0 for name in ("norms", "probe", "evaluate", "step", "after"))
