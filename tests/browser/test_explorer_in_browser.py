"""The explorer as a reader uses it, from a file and served."""

import json
import math
import statistics
import threading
from collections import defaultdict

import pytest
from made_runs import lab, losses, write
from scipy import stats
from waiting import settled

from attnlab.report.command import live
from attnlab.report.html import page as html_page
from attnlab.report.runs import Reader
from attnlab.report.serve import server
from attnlab.tracking.folder import folder_of
from attnlab.tracking.status import State


@pytest.fixture
def page(open_page, runs_html):
    return open_page(runs_html)


def ids(page):
    return page.locator("#runs tbody th button bdi").all_inner_texts()


def expected(made, wanted=lambda config: True):
    return sorted(folder_of(planned.config).path.name for planned in made.runs if wanted(planned.config))


def test_every_run_with_its_numbers(page, made):
    assert sorted(ids(page)) == expected(made)
    for planned in made.runs:
        row = page.locator(f"#runs tr[data-run='{folder_of(planned.config).path.name}']")
        cell = row.locator("[data-metric='final/dev/nll']")
        assert float(cell.get_attribute("data-value")) == losses(planned.config)[0]
        assert float(cell.inner_text()) == pytest.approx(losses(planned.config)[0], rel=1e-3)
        assert planned.config.attention.name in row.inner_text()


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("attention.name=zero_fill", lambda c: c.attention.name == "zero_fill"),
        ("attention.name!=zero_fill seed=2", lambda c: c.attention.name != "zero_fill" and c.seed == 2),
        ("final/dev/nll<1", lambda c: losses(c)[0] < 1),
        ("leak_gap>1 state=done", lambda c: c.attention.name == "zero_fill"),
        ("scale", lambda c: c.attention.name == "no_scale"),  # a word anywhere in what differs
        ("state=failed", lambda c: False),
        ("seed>=1", lambda c: True),
        ('attention.name="no_scale"', lambda c: c.attention.name == "no_scale"),
    ],
)
def test_the_filter(page, made, query, wanted):
    page.locator("#filter").fill(query)
    assert sorted(ids(page)) == expected(made, wanted)
    if not expected(made, wanted):
        assert "lets no run through" in page.locator("#runs").inner_text()


def test_a_filter_that_makes_no_sense_says_so(page, made):
    page.locator("#filter").fill("nosuchkey=1")
    assert "No run has ‘nosuchkey’" in page.locator(".problem").inner_text()
    assert sorted(ids(page)) == expected(made)


def test_sorting_by_a_metric(page, made):
    head = page.locator("#runs thead th", has_text="dev/nll").locator("button")
    by_loss = [folder_of(p.config).path.name for p in sorted(made.runs, key=lambda p: losses(p.config)[0])]
    head.click()
    assert ids(page) == by_loss[::-1]
    head.click()
    assert ids(page) == by_loss


def test_groups_have_means_and_intervals_over_seeds(page, made):
    page.locator("#group").fill("attention.name")
    page.locator("#group").press("Enter")
    groups = defaultdict(list)
    for planned in made.runs:
        groups[planned.config.attention.name].append(losses(planned.config)[0])
    assert page.locator("#runs tbody tr").count() == len(groups)
    for name, values in groups.items():
        row = page.locator("#runs tbody tr", has_text=name)
        cell = row.locator("td", has=page.locator("[data-metric='final/dev/nll']"))
        assert float(cell.locator(".mean").get_attribute("data-value")) == pytest.approx(
            statistics.mean(values)
        )
        half = stats.t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5
        low, high = cell.locator(".beside").inner_text().replace("−", "-").strip("[]").split(",")
        assert float(low) == pytest.approx(statistics.mean(values) - half, abs=2e-3)
        assert float(high) == pytest.approx(statistics.mean(values) + half, abs=2e-3)
        assert "2/2" in row.inner_text()


def test_a_group_that_mixes_settings_says_so(page):
    page.locator("#group").fill("seed")
    page.locator("#group").press("Enter")
    assert "also differ in attention.name" in page.locator("#runs tbody tr").first.inner_text()


def test_R43_a_group_with_a_nan_has_no_mean_and_says_of_how_many(open_page, tmp_path):
    made = lab(tmp_path / "outputs", ["correct", "zero_fill"], [1, 2, 3])
    folders = [write(planned.config) for planned in made.runs]
    status = folders[1].path / "status.json"
    kept = json.loads(status.read_text())
    kept["results"]["final/dev/nll"] = math.nan
    status.write_text(json.dumps(kept))
    page = open_page(html_page(vars(Reader(made.output).page("all runs")), "runs"))
    page.locator("#group").fill("attention.name")
    page.locator("#group").press("Enter")
    row = page.locator("#runs tbody tr", has_text="correct")
    assert "3/3" in row.inner_text()
    assert "NaN in 1 of 3" in row.inner_text()
    assert row.locator("[data-metric='final/dev/nll']").count() == 0
    whole = row.locator("[data-metric='final/dev/prefix_nll']")
    assert float(whole.get_attribute("data-value")) == pytest.approx(
        statistics.mean(losses(planned.config)[1] for planned in made.runs[:3])
    )


def test_any_key_becomes_a_column(page):
    page.locator("#columns").fill("test/prefix/chrf")
    page.locator("#columns").press("Enter")
    assert page.locator("#runs thead th", has_text="test/prefix/chrf").count() == 1
    page.locator(".chip", has_text="final/dev/nll").click()
    assert page.locator("#runs thead th", has_text="dev/nll").count() == 0
    page.reload()
    page.wait_for_selector("#runs tbody tr")
    assert page.locator("#runs thead th", has_text="test/prefix/chrf").count() == 1


def test_curves_are_of_the_runs_that_are_left(page):
    page.locator("#curves").scroll_into_view_if_needed()
    page.wait_for_selector("#curves .main-svg")
    cells = "[...new Set(document.querySelector('#curves .plot').data.filter((t) => t.customdata).map((t) => t.customdata[0][0]))]"
    assert len(page.evaluate(cells)) == 3
    page.locator("#filter").fill("attention.name=zero_fill")
    assert settled(page, lambda: page.evaluate(cells), [2]) == [2]  # the colour that it had among all


def test_paper_has_the_charts_of_the_page_and_no_earlier_ones(page):
    page.evaluate("document.getElementById('runs').style.marginBottom = '4000px'")  # none is near the screen
    for query in ("attention.name=zero_fill", "attention.name=correct", ""):
        page.locator("#filter").fill(query)
    page.evaluate("""() => {
        const react = Plotly.react;
        window.drawn = 0;
        Plotly.react = (...all) => { window.drawn++; return react(...all); };
    }""")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    count = page.locator(".plot").count()
    assert page.locator(".plot:has(.main-svg)").count() == count
    assert page.evaluate("window.drawn") <= count


def test_a_run_in_the_table_is_highlighted_in_the_curves(page):
    page.locator("#curves").scroll_into_view_if_needed()
    page.wait_for_selector("#curves .main-svg")
    run = ids(page)[0]
    page.locator("#runs tbody th button").first.click()
    assert page.locator("#runs tr.on").count() == 1
    widths = f"document.querySelector('#curves .plot').data.filter((t) => t.customdata?.[0][1] === '{run}').map((t) => t.line.width)"
    assert settled(page, lambda: page.evaluate(widths), [3]) == [3]


def test_states_and_reasons(open_page, tmp_path):
    made = lab(tmp_path / "outputs", ["correct", "zero_fill"], [1, 2])
    write(made.runs[0].config)
    write(made.runs[1].config, state=State.failed)
    write(made.runs[2].config, state=State.diverged)
    (made.output / "runs" / "damaged").mkdir()
    page = open_page(html_page(vars(Reader(made.output).page("all runs")), "runs"))
    text = page.locator("#runs tbody").inner_text()
    for expected_text in ("failed", "no luck", "diverged", "unreadable", "the run never started"):
        assert expected_text in text
    page.locator("#filter").fill("state=unreadable")
    assert ids(page) == ["damaged"]


def test_a_selected_run_is_described(page, made):
    config = next(
        p.config for p in made.runs if p.config.attention.name == "zero_fill" and p.config.seed == 2
    )
    run = folder_of(config).path.name
    page.locator(f"#runs tr[data-run='{run}'] button").click()
    text = page.locator(".details").inner_text()
    for expected_text in (run, "the model sees the future", "attention.mask_fill", "zero_fill"):
        assert expected_text in text
    page.keyboard.press("Escape")
    assert page.locator(".details").inner_text() == ""


@pytest.mark.parametrize(
    "address", ["columns=%5B%22se", "columns=1&group=%7B%7D&sort=3", "cell=99&run=none", "cell=-1"]
)
def test_an_address_that_was_cut_or_changed(open_page, runs_html, made, tmp_path, address):
    path = tmp_path / "runs.html"
    path.write_text(runs_html, encoding="utf-8")
    page = open_page(f"{path.as_uri()}#{address}")
    assert sorted(ids(page)) == expected(made)


def test_no_runs(open_page, tmp_path):
    page = open_page(html_page(vars(Reader(tmp_path).page("all runs")), "runs"))
    assert "There are no runs below" in page.locator("#runs").inner_text()


def test_a_served_page_takes_up_new_runs(open_page, tmp_path):
    made = lab(tmp_path / "outputs", ["correct"], [1, 2])
    write(made.runs[0].config)
    running = server(live([f"output={made.output}"], allow_mixed=False), 0)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    try:
        page = open_page(f"http://127.0.0.1:{running.server_address[1]}/", ready="#runs tbody tr")
        assert page.locator("#runs tbody tr").count() == 1
        page.evaluate("window.same = true")
        write(made.runs[1].config)
        page.wait_for_selector("#runs tbody tr:nth-child(2)")
        assert page.evaluate("window.same")  # without a reload: nothing that the reader did is lost
    finally:
        running.shutdown()
        running.server_close()


@pytest.mark.parametrize("width", [390, 1440])
def test_no_part_is_wider_than_the_screen(open_page, runs_html, width):
    page = open_page(runs_html, width=width, scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") == width
