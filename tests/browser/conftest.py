"""Pages in a headless Chromium. Every test here fails on an error in the console and on any request to a network."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))  # made_runs

from made_runs import lab, write

from attnlab.report.html import page as html_page
from attnlab.report.runs import Reader
from attnlab.report.study import study_page
from attnlab.study.claims import Claim

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
ARMS = ["correct", "no_scale", "zero_fill"]
Open = Callable[..., Any]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make test` leaves them out: they need a browser and take their time."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="no playwright: pip install 'attnlab[browser]'"
    )
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:  # a user-data folder of its own, thrown away at the end
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Open an address or HTML text; `problems` of the page collects what a quiet page never has."""
    contexts, problems = [], []

    def opened(
        target: str,
        *,
        width: int = 1440,
        scheme: str = "light",
        touch: bool = False,
        ready: str = "main section",
    ) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, has_touch=touch
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)  # milliseconds: a busy machine is slow, not broken
        allowed = target if target.startswith("http://127.0.0.1") else "file:"
        page.on(
            "console",
            lambda message: (
                problems.append(f"console: {message.text}") if message.type in ("error", "warning") else None
            ),
        )
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on(
            "request",
            lambda request: (
                problems.append(f"request: {request.url}")
                if not request.url.startswith((allowed, "data:", "blob:"))
                else None
            ),
        )
        page.on("dialog", lambda dialog: (problems.append("dialog"), dialog.dismiss()))
        if not target.startswith(("http:", "file:")):
            path = tmp_path / f"page-{len(contexts)}.html"
            path.write_text(target, encoding="utf-8")
            target = path.as_uri()
        page.goto(target)
        page.wait_for_selector(ready)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Three arms of two seeds; zero_fill leaks, and says so."""
    found = lab(tmp_path_factory.mktemp("made") / "outputs", ARMS, [1, 2])
    for planned in found.runs:
        alarms = ["the model sees the future"] if planned.config.attention.name == "zero_fill" else []
        write(planned.config, alarms=alarms)
    return found


@pytest.fixture(scope="session")
def study_html(made: Any, claims: list[Claim]) -> str:
    return html_page(vars(study_page(made.study, made.overrides, claims)), "demo")


@pytest.fixture(scope="session")
def runs_html(made: Any) -> str:
    return html_page(vars(Reader(made.output).page("all runs")), "runs")


@pytest.fixture(scope="session")
def claims(tmp_path_factory: pytest.TempPathFactory) -> list[Claim]:
    """One of each verdict."""
    from attnlab.study.expected import load_claims

    path = tmp_path_factory.mktemp("claims") / "expected.yaml"
    path.write_text(
        """
claims:
  - {id: A, statement: zero-fill leaks, metric: final/dev/leak_gap, kind: value, cell: zero_fill, control: null, direction: above, bounds: [1], source: by hand}
  - {id: B, statement: the control leaks, metric: final/dev/leak_gap, kind: value, cell: correct, control: null, direction: above, bounds: [1], source: by hand}
  - {id: C, statement: no number, metric: final/none, kind: value, cell: no_scale, control: null, direction: above, bounds: [1], source: by hand}
"""
    )
    return load_claims(path)
