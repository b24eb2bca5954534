"""Random overrides of every key: a config that runs two steps, or one sentence and exit code 2."""

import contextlib
import io
import os
from pathlib import Path

import pytest
from fuzz.conftest import TINY
from fuzz.counting import cases, one_sentence, refused_well, tried
from hypothesis import example, given
from hypothesis import strategies as st

from attnlab.cli import main
from attnlab.compose import compose, conf_dir, groups, load
from attnlab.config import Protocol, Site
from attnlab.errors import UserError
from attnlab.identity import plain
from attnlab.rules import check
from attnlab.run import run
from attnlab.study.variants import Variants, _plain_setting
from attnlab.tracking.status import State


def _leaves(values, prefix=""):
    for key, value in values.items():
        if isinstance(value, dict):
            yield prefix + key
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key


KEYS = sorted(_leaves(plain(load(TINY))))
CHOICES = [f"{group.name}={path.stem}" for group in groups() for path in group.glob("*.yaml")]
VALUES = [
    "", "null", "None", "true", "false", "'8'", '"', "'", "[]", "[1,2]", "[[1],2]", "{a:1}", "{}", "{a:{b:[1]}}", "-1", "0",
    "1", "2", "3", "7", "64", "0.1", "1.5", "1e-4", "nan", "inf", "-inf", "1e400", "1_000", "0x10", "1" * 5000, "a b", "a,b",
    "range(3)", "choice(1,2)", "glob(*)", "\\", "???", "=", "ü", "中", "%d", "{}{0}", "$", "${", "x" * 3000, "1..2",
    "cpu", "cuda:99", "auto", "xavier", "additive", "none", "after_softmax", "encoder", "[encoder,cross]", "bf16", "fp16", "de",
    "\x1b[31m", "a\x00b", "\u202e", "a\nb", "\udcff",
]  # fmt: skip
READABLE = [value for value in VALUES if _plain_setting(f"seed={value}") is not None]
REFERENCES = [
    "${seed}", "${nope}", "${model.heads}", "${oc.env:HOME}", "${oc.env:NOPE_NOPE}", "${oc.decode:'['}", "${study}",
    "${oc.create:[1]}", "${now:}", "${hydra:runtime.cwd}", "${.name}", "${model}", "${}", "${a:b:c}",
]  # fmt: skip
names = st.one_of(st.sampled_from(KEYS), st.sampled_from(KEYS), st.text(max_size=8))
plain_values = st.one_of(
    st.sampled_from(VALUES), st.sampled_from(VALUES), st.integers(-9, 99).map(str), st.text(max_size=12)
)
signs = st.sampled_from(["", "", "", "", "", "+", "++", "~"])
any_form = st.one_of(
    st.tuples(signs, names, plain_values).map(lambda found: f"{found[0]}{found[1]}={found[2]}"),
    st.sampled_from(CHOICES),
    st.text(max_size=12),
)
# What only Hydra can read takes it 0.1 s, so most are of the form that a study's cells have.
cells = st.tuples(
    st.sampled_from(KEYS), st.one_of(st.sampled_from(READABLE), st.integers(-9, 99).map(str))
).map("=".join)
overrides = st.one_of(*[cells] * 12, *[st.sampled_from(CHOICES)] * 4, any_form)
references = st.tuples(names, st.sampled_from(REFERENCES)).map("=".join)


@pytest.fixture(scope="module")
def base():
    return Variants(TINY, compose(TINY))


@cases(2600)
@given(st.lists(overrides, min_size=1, max_size=3))
@example(["\n"])
def test_overrides_are_a_config_or_a_sentence(base, given_overrides):
    tried("configs: overrides")
    try:
        config = base.config(given_overrides)
    except UserError as error:
        refused_well(error)
    else:
        check(config)


@cases(150)
@given(st.lists(st.one_of(any_form, references), min_size=1, max_size=2))
@example(["study.grid={model.d_k: '${nope}'}"])
@example(["launch.options={a.b: '${nope}'}"])
@example(["launch.options=" + "{a:" * 200 + "1" + "}" * 200])
@example(["data.name=" + "[" * 300 + "]" * 300])
@example(["hydra.searchpath=[nope]"])
@example(["hydra.run.dir=${nope}"])
@example(["--config-dir=/"])
def test_composed_overrides_are_a_config_or_a_sentence(given_overrides):
    tried("configs: composed by Hydra")
    try:
        check(load(given_overrides))
    except UserError as error:
        refused_well(error)


# ---------------------------------------------------------------- the command line

words = st.one_of(any_form, references, st.sampled_from(["--show", "--partial", "-h", "--", "experiment=demo", "experiment=", ""]))  # fmt: skip
RUN = ["nope", "", "/", ".", "..", "a\x1b[31m", "\udcff", "x" * 300]
commands = st.one_of(
    st.lists(words, max_size=2).map(lambda found: ["run", "--show", *found]),
    st.lists(words, max_size=2).map(lambda found: ["plan", *found]),
    st.lists(words, max_size=1).map(lambda found: ["table", *found]),
    st.lists(words, max_size=1).map(lambda found: ["workspace", "--sweep", *found]),
    st.tuples(st.sampled_from(RUN), plain_values).map(lambda found: ["translate", found[0], "--protocol", found[1]]),
    st.tuples(st.sampled_from(RUN), plain_values).map(lambda found: ["inspect", found[0], "--source", found[1]]),
    st.sampled_from(RUN).map(lambda run: ["page", "--only", run]),
    st.sampled_from(RUN).map(lambda run: ["sync", "--dry-run", "--output", run]),
    st.sampled_from(["nope", "", ":", "a:b:c", "os:", ":x", "os.path:nope", "..:x", "\x1b:x"]).map(lambda name: ["check", name]),
    st.lists(st.text(max_size=6), max_size=3),
)  # fmt: skip


@cases(150)
@given(commands)
def test_a_command_ends_with_a_result_or_one_sentence(tmp_path_factory, arguments):
    tried("command line")
    shown, said = io.StringIO(), io.StringIO()
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("empty"))
    try:
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(said):
            try:
                code = main(arguments)
            except SystemExit as end:  # argparse has the last word about options and verbs
                code, arguments = end.code, None
    finally:
        os.chdir(before)
    assert code in (0, 2), said.getvalue()
    if code == 2 and arguments is not None:
        last = said.getvalue().removesuffix("\n")
        assert last.startswith("attnlab: ")
        assert one_sentence(last), last
    for text in (shown.getvalue(), said.getvalue()):
        assert not any(character < " " and character not in "\n\t" for character in text)


# ---------------------------------------------------------------- runs

# By key what may be tried in seconds: within the rules or outside of them.
SMALL = {
    "data.train_pairs": ["1", "7", "40", "0"], "data.dev_pairs": ["1", "3"], "data.test_pairs": ["1", "4"],
    "data.src": ["de", "en", "fr"], "data.tgt": ["en", "de"], "data.corpus_seed": ["0", "5", "-3"], "data.max_pieces": ["1", "6", "64"],
    "data.overlap": ["keep", "remove"], "data.tokenizer.kind": ["bpe", "unigram"], "data.tokenizer.vocab_size": ["8", "60", "90", "4000"],
    "model.d_model": ["2", "4", "6", "7"], "model.heads": ["1", "2", "3"], "model.d_k": ["null", "1", "5"], "model.d_v": ["null", "1", "3"],
    "model.d_ff": ["1", "9"], "model.encoder_layers": ["1", "2", "0"], "model.decoder_layers": ["1", "2"],
    "model.dropout": ["0", "0.9", "1"], "model.attention_dropout": ["0", "0.9"], "model.norm": ["pre", "post"],
    "model.tie_embeddings": ["true", "false"], "train.steps": ["0", "1", "2"], "train.batch_tokens": ["1", "30", "500"],
    "train.equal_target_lengths": ["true", "false"], "train.accumulate": ["1", "2"], "train.schedule": ["paper", "inverse_sqrt"],
    "train.lr": ["1e-9", "1", "1e30", "0"], "train.warmup": ["0", "1", "5"], "train.betas": ["[0,0]", "[0.5,0.999]", "[1,1]"],
    "train.eps": ["1e-20", "1"], "train.weight_decay": ["0", "5"], "train.label_smoothing": ["0", "0.9"], "train.clip": ["null", "1e-8", "5"],
    "train.precision": ["fp32", "bf16"], "train.checkpoint_every": ["1", "2", "9"], "train.average_last": ["1", "3"], "train.patience": ["null", "1"],
    "measure.every": ["1", "5"], "measure.evaluate_every": ["1", "5"], "measure.log_every": ["1", "3"], "measure.probe_sentences": ["1", "99"],
    "measure.prefix_sentences": ["1", "99"], "measure.enabled": ["true", "false"], "measure.images": ["true", "false"],
    "decode.protocols": ["[]", "[prefix]", "[cached]", "[cached,prefix]"], "decode.beam": ["1", "2", "500"], "decode.length_penalty": ["0", "1"],
    "decode.max_length_factor": ["0", "0.5"], "decode.max_length_extra": ["1", "3"], "decode.batch_sentences": ["1", "9"],
    "decode.sentences": ["null", "1", "99"], "seed": ["0", "5", "999999999999999999"], "threads": ["1", "2"], "study.control": ["null", "x"],
    "attention.mask_fill": ["-inf", "0", "-1e9", "1e30"], "attention.where.layers": ["null", "[1]", "[2]"], "attention.where.heads": ["null", "[1]", "[2,1]"],
    "attention.where.sites": [f"[{site}]" for site in Site], "attention.init": ["xavier", "xavier_packed", "torch_linear", "normal_002"],
    "attention.qk_norm_length": ["2", "50"], "attention.name": ["x", "'a b'", "ü"],
    "attention": [path.stem for path in (conf_dir() / "attention").glob("*.yaml")],
}  # fmt: skip
settings_of_runs = st.dictionaries(st.sampled_from(sorted(SMALL)), st.integers(0, 99), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    fixed = [*TINY, f"output={tmp_path_factory.mktemp('runs')}"]
    return Variants(fixed, compose(fixed))


@cases(60)
@given(settings_of_runs)
@example({"attention.mask_fill": 3})
@example({"decode.protocols": 0})
@example({"decode.beam": 2})
@example({"data.tokenizer.vocab_size": 0})
@example({"data.corpus_seed": 38})
def test_a_valid_config_runs_two_steps(tiny, drawn):
    tried("configs: runs of two steps")
    try:
        config = tiny.config(
            [f"{key}={SMALL[key][number % len(SMALL[key])]}" for key, number in drawn.items()]
        )
        outcome = run(config, bar=False)
    except UserError as error:
        refused_well(error)
        return
    assert outcome.status.state in (State.done, State.diverged)
    if outcome.status.state is State.done:
        assert outcome.status.step == config.train.steps
        assert {
            f"test/{protocol}/bleu" for protocol in config.decode.protocols
        } <= outcome.status.results.keys()
        assert set(config.decode.protocols) <= set(Protocol)
