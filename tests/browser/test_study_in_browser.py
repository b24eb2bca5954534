"""A study's page as a reader uses it."""

import csv
import io
import re
from dataclasses import replace

import pytest
from made_runs import lab, write
from waiting import drawn, settled

from attnlab.report.html import page as html_page
from attnlab.report.study import study_page
from attnlab.study import render, table
from attnlab.study.grid import PlannedRun

PANELS = [
    "Verdicts",
    "Ablation",
    "Leak plot",
    "Training",
    "Entropy",
    "Gradients",
    "Factors and results",
    "Attention",
    "Translations",
    "Provenance",
]
PLOTS = ".js-plotly-plot"


@pytest.fixture
def page(open_page, study_html):
    return open_page(study_html)


def minus(text):
    return text.replace("\u2212", "-").replace("+", "")


def test_panels_in_their_order(page):
    assert page.locator("h2").all_inner_texts() == PANELS


def test_numbers_are_those_of_the_table(page, made, claims):
    rows = list(csv.DictReader(io.StringIO(render.csv(table.build(made.study, made.overrides, claims)))))
    seen = 0
    for shown in page.locator("#table .mean").all():
        arm = shown.locator("xpath=ancestor::tr//th//bdi").inner_text()
        metric, text = shown.get_attribute("data-metric"), minus(shown.inner_text())
        row = next(r for r in rows if (r["arm"], r["metric"]) == (arm, metric))
        values = [float(row[key]) for key in ("mean", "difference") if row[key]]
        full = float(shown.get_attribute("data-value"))
        assert any(full == pytest.approx(value, rel=1e-9) for value in values)
        assert float(text) == pytest.approx(full, abs=0.5 * 10 ** -len(text.partition(".")[2]) + 1e-12)
        interval = shown.locator("xpath=..").locator(".beside").first.inner_text()
        if re.fullmatch(r"\[.*\]", interval):
            low = float(minus(interval).strip("[]").split(",")[0])
            assert low == pytest.approx(
                float(row["low" if full == pytest.approx(values[0], rel=1e-9) else "difference_low"]),
                abs=0.006,
            )
        seen += 1
    assert seen == 3 * 5 + 2 * 3  # every column of three arms, and three differences of two


def test_verdicts_with_sign_and_word(page):
    items = page.locator(".claim")
    assert [item.locator("strong").inner_text() for item in items.all()] == [
        "confirmed",
        "refuted",
        "inconclusive",
    ]
    assert page.locator(".claim .sign").all_inner_texts() == ["●", "✕", "○"]
    assert (
        page.locator("#claims .reading")
        .inner_text()
        .startswith("3 claims: 1 confirmed, 1 refuted, 1 inconclusive.")
    )


def test_a_column_sorts_down_up_and_back(page):
    def arms():
        return page.locator("#table tbody th bdi").all_inner_texts()

    values = {
        row.locator("th bdi").inner_text(): float(row.locator(".mean").first.get_attribute("data-value"))
        for row in page.locator("#table tbody tr").all()
    }
    given = arms()
    head = page.locator("#table thead th", has_text="dev nll")
    for order, expected in (
        ("descending", sorted(values, key=values.get, reverse=True)),
        ("ascending", sorted(values, key=values.get)),
        (None, given),
    ):
        head.locator("button").click()
        assert arms() == expected
        assert head.get_attribute("aria-sort") == order


def test_an_arm_is_highlighted_in_every_panel(page):
    drawn(page)
    page.locator("#legend .arm", has_text="zero_fill").click()
    assert page.locator("#table tr.on th bdi").all_inner_texts() == ["zero_fill"]
    assert page.locator("#table tr.off").count() == 2
    assert page.locator("#entropy .card.on bdi").all_inner_texts() == ["zero_fill"]
    assert page.locator("#maps .card.on bdi").all_inner_texts() == ["zero_fill"]
    assert page.locator("#factors path.run.on").count() == 2
    assert page.locator("#translations dd.on").count() == 1
    assert page.locator("#provenance tr.on").count() == 2
    faint = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--faint').trim()")
    used = "(plot) => plot.data.filter((t) => t.customdata).map((t) => [t.customdata[0][0], [t.line?.color, t.marker?.color].flat()])"
    for plot in page.locator(PLOTS).all():  # in each chart the others are faint, and it is not

        def shown(plot=plot):
            """Whether a trace is faint, by its cell."""
            return {(cell, faint in colors) for cell, colors in plot.evaluate(used)}

        cells = {cell for cell, _ in shown()}
        assert {2} < cells
        wanted = {(cell, cell != 2) for cell in cells}
        assert settled(page, shown, wanted) == wanted
    page.keyboard.press("Escape")
    assert page.locator(".off, .on").count() == 0


def test_a_run_is_highlighted_from_any_panel(page):
    drawn(page)
    run = page.locator("#provenance tbody tr").nth(3)
    run_id = run.get_attribute("data-run")
    run.locator("button").click()
    assert page.locator("#legend .arm[aria-pressed=true]").all_inner_texts() == ["no_scale", "seed 2"]
    assert page.locator("#factors path.run.on").get_attribute("data-run") == run_id
    assert page.locator("#provenance tr.on").get_attribute("data-run") == run_id
    assert "seed 2" in page.locator("#translations dt.on").inner_text()
    page.locator("#factors path.target").first.dispatch_event("click")
    assert page.locator("#provenance tr.on").count() == 1
    assert page.locator("#provenance tr.on").get_attribute("data-run") != run_id


def test_a_click_on_a_curve_selects_its_arm(page):
    drawn(page)
    page.locator("#curves .plot").first.scroll_into_view_if_needed()
    page.locator("#curves .plot").first.evaluate(
        "(plot) => plot.emit('plotly_click', {points: [{customdata: [1, null]}]})"
    )
    assert page.locator("#table tr.on th bdi").all_inner_texts() == ["no_scale"]


def test_the_selection_outlives_a_reload(page):
    page.locator("#legend .arm", has_text="zero_fill").click()
    page.reload()
    page.wait_for_selector("main section")
    assert page.locator("#table tr.on th bdi").all_inner_texts() == ["zero_fill"]


def test_everything_is_reached_from_the_keyboard(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    reached = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.closest('section, nav')?.id"))
    assert {
        "legend",
        "claims",
        "table",
        "leak",
        "curves",
        "entropy",
        "gradients",
        "factors",
        "maps",
        "translations",
        "provenance",
    } <= reached
    page.locator("#legend .arm").nth(1).focus()
    page.keyboard.press("Enter")
    assert page.locator("#table tr.on th bdi").all_inner_texts() == ["no_scale"]
    assert (
        page.evaluate("document.activeElement.textContent") == "no_scale"
    )  # and the focus stays where it was
    page.locator("#factors .parallel").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#factors path.run.on").count() == 1
    page.locator("#maps canvas").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.locator("#maps .readout").first.inner_text().startswith("das → <s>: ")


def test_axes_have_titles_and_units(page):
    drawn(page)
    titles = page.evaluate(
        f"[...document.querySelectorAll('{PLOTS}')].flatMap((plot) => [plot.layout.xaxis.title.text, plot.layout.yaxis.title.text])"
    )
    assert len(titles) == 2 * (2 + 3 + 3 + 8)
    assert all(titles)
    assert set(titles[0::2]) == {"update", "Dev loss, teacher-forced (nats a token)"}
    assert all("nats" in title or "BLEU" in title for title in titles[1::2])


def test_scales_and_bands_are_switched(page):
    drawn(page)
    plot = page.locator("#curves .plot").nth(1)
    assert plot.evaluate("(plot) => plot.layout.yaxis.type") == "log"
    filled = "(plot) => plot.data.filter((trace) => trace.fill === 'tonexty').length"
    assert plot.evaluate(filled) == 3
    page.locator("#curves button", has_text="log values").click()
    page.locator("#curves button", has_text="seed bands").click()
    assert plot.evaluate("(plot) => plot.layout.yaxis.type") == "linear"
    assert plot.evaluate(filled) == 0


def test_a_band_runs_from_the_lowest_seed_to_the_highest(page, made):
    from attnlab.tracking.folder import folder_of

    drawn(page)
    runs = [
        folder_of(planned.config).read_metrics()
        for planned in made.runs
        if planned.config.attention.name == "correct"
    ]
    ends = [[record["dev/nll"] for record in run if "dev/nll" in record][-1] for run in runs]
    traces = (
        page.locator("#curves .plot")
        .nth(1)
        .evaluate("(plot) => plot.data.slice(0, 3).map((trace) => trace.y.at(-1))")
    )
    assert traces == pytest.approx([min(ends), max(ends), sum(ends) / 2], rel=1e-3)


def test_arms_differ_without_colour(page):
    drawn(page)
    marks = page.locator("#curves .plot").first.evaluate(
        "(plot) => plot.data.filter((t) => t.customdata).map((t) => [t.line.dash, t.marker.symbol])"
    )
    assert len({dash for dash, _ in marks}) == len({symbol for _, symbol in marks}) == 3


def test_sentences_are_turned(page, made):
    from made_runs import corpus_of

    test = corpus_of(made.runs[0].config).test
    texts = page.locator("#translations dd")
    assert texts.all_inner_texts()[:3] == [test.src[0], test.tgt[0], "(empty)"]
    page.locator("#translations button", has_text="next").click()
    assert texts.all_inner_texts()[:3] == [test.src[1], test.tgt[1], test.tgt[1]]
    page.locator("#translations button", has_text="previous").click()
    page.locator("#translations button", has_text="previous").click()
    assert (
        page.locator("#translations .controls output").inner_text()
        == f"sentence {len(test.src)} of {len(test.src)}"
    )


def test_another_head_is_shown(page):
    before = page.locator("#maps canvas").first.evaluate("(canvas) => canvas.toDataURL()")
    page.locator("#maps select").nth(0).select_option("cross")
    page.locator("#maps select").nth(2).select_option("2")
    assert page.locator("#maps canvas").first.evaluate("(canvas) => canvas.toDataURL()") != before
    assert (
        page.locator("#maps canvas")
        .first.get_attribute("aria-label")
        .startswith("Attention of correct, cross/layer1/head2")
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_no_part_is_wider_than_the_screen(open_page, study_html, width, scheme):
    page = drawn(open_page(study_html, width=width, scheme=scheme, touch=width == 390))
    assert page.evaluate("document.documentElement.scrollWidth") == width
    paper = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert paper == ("rgb(255, 254, 250)" if scheme == "light" else "rgb(21, 23, 26)")
    ink = page.locator(PLOTS).first.evaluate("(plot) => plot.layout.font.color")
    assert ink == ("#1b1b1b" if scheme == "light" else "#f0ede4")


def test_every_chart_is_drawn_on_paper(page, tmp_path):
    assert page.locator(".plot:not(:has(.main-svg))").count() > 0
    page.pdf(path=tmp_path / "page.pdf")
    assert page.locator(".plot:not(:has(.main-svg))").count() == 0


def test_results_along_a_factor(open_page, tmp_path):
    """Three learning rates: marks at the table's means, bars as long as its intervals."""
    made = lab(tmp_path / "outputs", ["correct"], [1, 2])
    cells = []
    for rate in (0.0003, 0.001, 0.003):
        for planned in made.runs:
            config = replace(planned.config, train=replace(planned.config.train, lr=rate))
            cells.append(PlannedRun(("attention=correct", f"train.lr={rate}", f"seed={config.seed}"), config))
            write(config)
    shown = study_page(replace(made.study, cells=cells), made.overrides, [])
    page = drawn(open_page(html_page(vars(shown), "t")))
    assert page.locator("#table th bdi").first.inner_text() == "correct train.lr=0.0003"
    assert page.locator("#legend .arm").first.inner_text() == "correct lr=0.0003"
    trace = page.evaluate("document.getElementById('along-train.lr').querySelector('.plot').data[0]")
    numbers = [row[0].number for row in shown.rows]
    assert trace["x"] == [0.0003, 0.001, 0.003]
    assert trace["y"] == [number.value for number in numbers]
    assert trace["error_y"]["array"] == pytest.approx([number.high - number.value for number in numbers])
    layout = page.evaluate("document.getElementById('along-train.lr').querySelector('.plot').layout.xaxis")
    assert (layout["type"], layout["title"]["text"], layout["tickvals"]) == (
        "log",
        "train.lr",
        [0.0003, 0.001, 0.003],
    )


def test_a_study_with_columns_of_its_own_has_no_leak_plot(open_page, tmp_path):
    made = lab(tmp_path / "outputs", ["correct", "no_scale"], [1, 2])
    for planned in made.runs:
        write(planned.config)
    columns = ["final/dev/accuracy", "final/dev/leak_gap"]
    base = made.study.base
    chosen = replace(made.study, base=replace(base, study=replace(base.study, columns=columns)))
    page = open_page(html_page(vars(study_page(chosen, made.overrides, [])), "t"))
    assert "dev/accuracy" in page.locator("#table thead").inner_text()
    assert page.locator("#table thead", has_text="BLEU").count() == 0
    assert page.locator("#leak").count() == 0
    assert page.locator("#curves").count() == 1
