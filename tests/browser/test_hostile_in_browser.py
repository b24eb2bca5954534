"""Names, settings and translations that would be markup, code or a change of direction are shown as text."""

from dataclasses import replace

import pytest
from made_runs import TGT, corpus_of, lab, write
from waiting import drawn

from attnlab.report.html import page as html_page
from attnlab.report.runs import Reader
from attnlab.report.study import study_page
from attnlab.study.grid import PlannedRun

NAMES = [
    "<script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>\"'&amp;",
    "\u202eevil\u2028 שלום </script><b>bold</b>",
]
TRANSLATION = "<a href=\"javascript:window.hit=1\">x</a> & 'y' \u05e9\u05dc\u05d5\u05dd"


@pytest.fixture
def hostile(tmp_path):
    """Three arms with such names; their translations and data name are no better."""
    made = lab(tmp_path / "outputs", ["correct", "zero_fill", "no_scale"], [1, 2])
    cells = []
    for index, planned in enumerate(made.runs):
        name = NAMES[index // 2]
        config = replace(
            planned.config,
            attention=replace(planned.config.attention, name=name),
            study=replace(planned.config.study, question=NAMES[0]),
        )
        cells.append(PlannedRun((f"attention={name}", f"seed={config.seed}"), config))
        count = len(corpus_of(config).test.tgt)
        write(
            config,
            translations=[TRANSLATION, *[""] * (count - 1)],
            sources=[NAMES[1], *["s"] * (count - 1)],
            alarms=[NAMES[0]],
        )
    base = replace(made.study.base, study=replace(made.study.base.study, question=NAMES[0]))
    return replace(made, study=replace(made.study, cells=cells, control=NAMES[0], base=base))


def test_a_study_of_hostile_names(open_page, hostile):
    page = drawn(open_page(html_page(vars(study_page(hostile.study, hostile.overrides, [])), NAMES[1])))
    assert page.evaluate("window.hit") is None
    assert page.locator("main script, main img, main b, main a").count() == 0
    assert page.title() == NAMES[1]
    assert (
        page.locator("#table tbody th bdi").evaluate_all("(all) => all.map((one) => one.textContent)")
        == NAMES
    )
    assert page.locator(".question bdi").evaluate("(one) => one.textContent") == NAMES[0]
    texts = page.locator("#translations dd").evaluate_all("(all) => all.map((one) => one.textContent)")
    assert texts == [NAMES[1], corpus_of(hostile.runs[0].config).test.tgt[0], *[TRANSLATION] * 3]
    assert page.locator("#translations dd bdi").last.get_attribute("dir") == "auto"


def test_hover_and_labels_of_charts_are_text(open_page, hostile):
    page = drawn(open_page(html_page(vars(study_page(hostile.study, hostile.overrides, [])), "t")))
    plot = page.locator("#leak .plot").first
    labels = plot.locator(".textpoint text").evaluate_all("(all) => all.map((one) => one.textContent)")
    assert NAMES[1] in labels
    assert plot.locator("svg a, svg script, svg foreignObject, svg image").count() == 0
    plot.evaluate("(plot) => Plotly.Fx.hover(plot, [{curveNumber: 1, pointNumber: 0}])")
    plot.locator(".hovertext").first.wait_for()
    hover = plot.locator(".hovertext").evaluate_all("(all) => all.map((one) => one.textContent).join()")
    assert NAMES[0] in hover
    assert page.evaluate("window.hit") is None


def test_an_explorer_of_hostile_names(open_page, hostile):
    page = drawn(open_page(html_page(vars(Reader(hostile.output).page(NAMES[1])), NAMES[1])))
    assert page.evaluate("window.hit") is None
    assert page.locator("main script, main img, main b, main a").count() == 0
    shown = page.locator("#runs tbody td bdi").evaluate_all("(all) => all.map((one) => one.textContent)")
    assert set(NAMES) <= set(shown)
    page.locator("#filter").fill("onerror")
    assert page.locator("#runs tbody tr").count() == 2
    page.locator("#filter").fill(f'attention.name="{NAMES[2]}"')
    assert page.locator("#runs tbody tr").count() == 2


def test_tokens_of_a_map_are_text(open_page, made, monkeypatch):
    import made_runs

    monkeypatch.setattr(made_runs, "TGT", ["<s>", "<img src=x onerror=window.hit=1>", TGT[2], TGT[3]])
    for planned in made.runs[:1]:
        write(replace(planned.config, force=True))
    page = open_page(html_page(vars(study_page(made.study, made.overrides, [])), "t"))
    page.locator("#maps canvas").first.focus()
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    assert (
        page.locator("#maps .readout").first.inner_text().startswith("<img src=x onerror=window.hit=1> → <s>")
    )
    assert page.evaluate("window.hit") is None
    monkeypatch.undo()
    write(made.runs[0].config)
