"""A study of 60 runs: the page stays small and is made quickly."""

import time

import pytest
from made_runs import lab, write

from attnlab.compose import conf_dir
from attnlab.report.html import page
from attnlab.report.runs import Reader
from attnlab.report.study import study_page

ARMS = sorted(path.stem for path in (conf_dir() / "attention").glob("*.yaml"))[:15]
LIMIT = 8_000_000  # bytes
SECONDS = 10


@pytest.mark.slow
def test_sixty_runs(tmp_path):
    """As long as a run of the page's size: 4 layers and heads, 200 records, 20 looks."""
    made = lab(tmp_path / "outputs", ARMS, [1, 2, 3, 4], sentences=100)
    assert len(made.runs) == 60
    for planned in made.runs:
        write(planned.config, steps=4000, every=20, looks=20, layers=4, heads=4)
    for contents in (
        lambda: study_page(made.study, made.overrides, []),
        lambda: Reader(made.output).page("all runs"),
    ):
        start = time.process_time()  # of the processor: other work on this machine is not the page's
        text = page(vars(contents()), "t")
        assert time.process_time() - start < SECONDS
        assert len(text.encode()) < LIMIT
