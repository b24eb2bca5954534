"""A mistake that costs nothing to find is found before torch, which takes seconds to load."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "wandb", "scipy", "matplotlib", "sacrebleu", "datasets", "transformers")
CODE = """
import sys
from attnlab.cli import main
code = main(sys.argv[2:])
print("loaded:", [name for name in sys.argv[1].split(",") if name in sys.modules], file=sys.stderr)
raise SystemExit(code)
"""


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", "--show"], 0, ""),
        (["run", "model.heads=3"], 2, "model.heads: got 3"),
        (["run", "experiment=demo", "seed=one"], 2, "seed: got 'one'"),
        (["plan", "experiment=demo"], 0, ""),
        (["plan", "experiment=nope"], 2, "experiment: got 'nope'"),
        (["table", "experiment=demo"], 2, "got 0 of its"),
        (["translate", "nope"], 2, "run: got 'nope'"),
        (["translate", "nope", "--beam", "0"], 2, "--beam: got 0"),
        (["inspect", "nope", "--source", "x"], 2, "run: got 'nope'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_no_heavy_library_is_loaded(arguments, code, words, tmp_path):
    command = [sys.executable, "-c", CODE, ",".join(HEAVY), *arguments]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert found.stderr.splitlines()[-1] == "loaded: []", found.stderr
    assert found.returncode == code
    assert words in found.stderr
