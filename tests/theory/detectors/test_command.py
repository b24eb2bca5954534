"""`attnlab check package.module:callable`."""

import json
from pathlib import Path

import pytest

from attnlab import cli
from attnlab.errors import UserError
from attnlab.theory.detectors import command


@pytest.fixture(autouse=True)
def in_the_users_folder(monkeypatch):
    monkeypatch.chdir(Path(__file__).parent)


def test_a_right_function_ends_with_0(capsys):
    assert command.run("callables:by_hand") == 0
    assert "by_hand: no mistake found by 7 checks" in capsys.readouterr().out


def test_a_mistake_ends_with_1_and_json_is_plain(capsys):
    assert command.run("callables:zero_filled", as_json=True) == 1
    assert json.loads(capsys.readouterr().out)["mistakes"][0]["mistake"] == "finite_fill"


def test_a_function_without_arguments_makes_the_block(capsys):
    assert command.run("callables:makes_a_block") == 0
    assert "MultiheadAttention" in capsys.readouterr().out


def test_options_reach_the_checks(capsys):
    assert command.run("callables:drop_convention", mask="drop") == 0
    assert command.run("callables:TokensIn", causal=True, width=16, heads=4) == 0
    assert command.run("callables:always_causal", causal=True) == 0
    capsys.readouterr()


def test_a_wrong_guess_about_the_mask_is_said(capsys):
    assert command.run("callables:drop_convention") == 1
    assert capsys.readouterr().err == (
        "attnlab: with --mask drop nothing is wrong: is that what its mask means?\n"
    )
    assert command.run("callables:zero_filled") == 1
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("target", ["callables.py:by_hand", "../detectors/callables:by_hand"])
def test_a_path_is_no_module(target):
    with pytest.raises(UserError, match=r"allowed: package\.module:name from the folder"):
        command.run(target)


def test_names_inside_objects_are_found():
    from collections import OrderedDict

    assert command.find("collections:OrderedDict.fromkeys") == OrderedDict.fromkeys


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("callables", "package.module:name"), ("no_such_module:f", "No module"), ("callables:no_such", "no_such"),
        ("callables:NeedsArguments", "needs width"), ("math:pi", "float"),
    ],
)  # fmt: skip
def test_a_wrong_target_is_one_sentence(target, message):
    with pytest.raises(UserError, match=message):
        command.run(target)


RAISING = {
    "syntax": ("def f(q, k, v)\n    return v\n", "cannot be imported (SyntaxError: ", ", line 1)"),
    "import": (
        "import math\n\nmath.sqrt(-1)\n",
        "cannot be imported (ValueError: math domain error, {} line 3)",
        "",
    ),
    "exit": ("import sys\nsys.exit('usage: train FILE')\n", "(SystemExit: usage: train FILE, {} line 2)", ""),
    "unnamed": ("raise StopIteration\n", "cannot be imported (StopIteration, {} line 1)", ""),
    "attribute": (
        "def __getattr__(name):\n    return 1 / 0\n",
        "(ZeroDivisionError: division by zero, {} line 2)",
        "",
    ),
    "factory": (
        "def f():\n    raise RuntimeError('no weights:\\n  give a path')\n",
        "which makes no attention (RuntimeError: no weights: give a path, {} line 2)",
        "",
    ),
    "checked": (  # takes one sentence alone, and only after it was looked over
        "import torch\n\ncalls = 0\n\ndef f(q, k, v, mask=None):\n    global calls\n    calls += 1\n"
        "    if calls > 12:\n        raise LookupError('cache is full')\n"
        "    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)\n",
        "which cannot be checked (LookupError: cache is full, {} line 9)",
        "",
    ),
}


@pytest.mark.parametrize("name", RAISING)
def test_what_the_users_code_raises_is_one_sentence_and_2(name, tmp_path, monkeypatch, capsys):
    code, *wanted = RAISING[name]
    (tmp_path / f"raises_{name}.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["check", f"raises_{name}:f"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith(f"attnlab: check: got 'raises_{name}:f', which ")
    for part in wanted:
        assert part.format(f"raises_{name}.py") in line
