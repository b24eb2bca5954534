"""`attnlab check package.module:callable`."""

import json
from pathlib import Path

import pytest

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
