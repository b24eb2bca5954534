"""`attnlab workspace`: what is written without a key, what reaches the stand-in server with one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_wandb_mirror import tree
from tracking_example import child_environment, expanded
from wandb_server import ENTITY, StandIn

from attnlab import cli
from attnlab.compose import conf_dir
from attnlab.config import Site
from attnlab.errors import UserError
from attnlab.tracking.workspace import save as save_module
from attnlab.tracking.workspace.facts import Facts, facts_of
from attnlab.tracking.workspace.save import save

pytest.importorskip("wandb_workspaces", reason="comes with attnlab[wandb-workspaces]")

from attnlab.tracking.workspace import panels

QUESTION = '<script>alert(1)</script> "it\'s" עברית?'


def facts(folder: Path, **changes: Any) -> Facts:
    values = {
        "study": "heads", "question": QUESTION, "control": "model.heads=4", "command": "attnlab run experiment=heads",
        "factors": ("attention.name", "model.heads"), "run_ids": ("0123456789", "abcdefabcd_1"),
        "layers": {Site.encoder: 3, Site.decoder: 2, Site.cross: 2}, "bleu": "test/cached/bleu", "project": "attnlab",
        "entity": None, "folder": folder,
    }  # fmt: skip
    return Facts(**(values | changes))


def all_texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value, keys left out."""
    match value:
        case str():
            yield value
        case dict() | list():
            for inner in value.values() if isinstance(value, dict) else value:
                yield from all_texts(inner)


def panels_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The panels of a workspace's or a report's JSON."""
    if "section" in spec:
        return [
            panel for section in spec["section"]["panelBankConfig"]["sections"] for panel in section["panels"]
        ]
    grids = [block["metadata"] for block in spec["blocks"] if block["type"] == "panel-grid"]
    return [panel for grid in grids for panel in grid["panelBankSectionConfig"]["panels"]]


def test_without_a_key_both_are_written_and_one_sentence_says_how_to_go_on(output: Path) -> None:
    folder = output / "studies" / "heads"
    said = save(facts(folder), output, "| arm | BLEU |\n| a | 1 |")
    assert "\n" not in said
    assert "`wandb login`" in said
    workspace, report = (
        json.loads((folder / f"wandb_{name}.json").read_text()) for name in ("workspace", "report")
    )
    for spec in (workspace, report):
        kinds = {panel["viewType"] for panel in panels_of(spec)}
        assert kinds == {
            "Scatter Plot", "Parallel Coordinates Plot", "Run History Line Plot", "Media Browser", "Weave",
        }  # fmt: skip
        scatter = next(panel["config"] for panel in panels_of(spec) if panel["viewType"] == "Scatter Plot")
        assert (scatter["xAxis"], scatter["yAxis"]) == ("summary:final/dev/nll", "summary:test/cached/bleu")
        columns = next(
            p["config"]["columns"] for p in panels_of(spec) if p["viewType"].startswith("Parallel")
        )
        assert [column["accessor"] for column in columns] == [
            "config:attention.value.name", "config:model.value.heads", "summary:final/dev/nll",
            "summary:final/dev/prefix_nll", "summary:test/cached/bleu",
        ]  # fmt: skip
    texts = list(all_texts(report))
    assert QUESTION in " ".join(texts)
    assert "| arm | BLEU |\n| a | 1 |" in texts
    (runs,) = workspace["section"]["runSets"]
    assert [(key["section"], key["name"]) for key in runs["grouping"]] == [
        ("config", "attention.value.name"), ("config", "model.value.heads"),
    ]  # fmt: skip
    (own,) = runs["filters"]["filters"]
    assert (own["key"], own["op"], own["value"]) == (
        {"section": "config", "name": "run_id.value"}, "IN", ["0123456789", "abcdefabcd_1"],
    )  # fmt: skip


def test_every_metric_of_a_panel_is_one_that_a_run_logs(output: Path) -> None:
    """Against the glossary, which another test holds to what is logged."""
    glossary = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    folder = output / "studies" / "heads"
    save(facts(folder), output, None)
    spec = json.loads((folder / "wandb_workspace.json").read_text())
    lines = [
        panel["config"]["metrics"]
        for panel in panels_of(spec)
        if panel["viewType"] == "Run History Line Plot"
    ]
    metrics = {metric for line in lines for metric in line}
    assert len(metrics) > 15
    for metric in metrics:
        name, _, last = metric.rpartition("/")
        assert f"`{metric}`" in glossary or (last in set(Site) and f"`{name}/<site>`" in glossary), metric
    media = [key for panel in panels_of(spec) for key in panel["config"].get("mediaKeys", [])]
    assert media == [
        *(f"test/attention/encoder/layer{layer}" for layer in (1, 2, 3)),
        *(f"test/attention/decoder/layer{layer}" for layer in (1, 2)),
        *(f"test/attention/cross/layer{layer}" for layer in (1, 2)),
    ]


def test_the_library_reads_back_what_it_wrote(output: Path) -> None:
    """The object model is W&B's: its own reader takes the panels for what they are."""
    from wandb_workspaces.workspaces import Workspace

    made = panels.workspace(facts(output), "someone")
    again = Workspace._from_model(made._to_model())
    assert [section.name for section in again.sections] == [section.name for section in made.sections]
    for before, after in zip(made.sections, again.sections, strict=True):
        assert [type(panel) for panel in before.panels] == [type(panel) for panel in after.panels]
        assert [panel._to_model() for panel in before.panels] == [panel._to_model() for panel in after.panels]
    assert again.runset_settings.groupby[1].name == "model.heads"


def command(server: StandIn, home: Path, *overrides: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "attnlab", "workspace", *overrides],
        env=child_environment() | server.environment(),
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_with_a_key_both_are_saved_and_a_second_call_changes_them_in_place(
    server: StandIn, output: Path, home: Path
) -> None:
    overrides = ["experiment=demo", f"output={output}", "track.project=a-project"]
    result = command(server, home, *overrides)
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    workspace, report = server.views["view-1"], server.views["view-2"]
    assert (workspace["type"], report["type"]) == ("project-view", "runs")
    for view in (workspace, report):
        assert (view["entityName"], view["projectName"]) == (ENTITY, "a-project")
    page = workspace["name"].removeprefix("nw-").removesuffix("-v")
    assert result.stdout.splitlines() == [
        f"workspace {server.url}/{ENTITY}/a-project?nw={page}",
        f"report {server.url}/{ENTITY}/a-project/reports/attnlab-demo--view-2",
    ]
    sent = json.loads(workspace["spec"])
    wanted = expanded("demo").runs
    assert len(sent["section"]["runSets"][0]["filters"]["filters"][0]["value"]) == len(wanted)
    assert set(server.unknown) <= {"ServerFeaturesQuery"}
    assert tree(home) == set()
    assert command(server, home, *overrides).returncode == 0
    assert set(server.views) == {"view-1", "view-2"}
    assert server.views["view-1"]["name"] == workspace["name"]


@pytest.mark.slow
def test_a_server_that_takes_nothing_is_one_sentence(
    output: Path, server: StandIn, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = StandIn.answer
    monkeypatch.setattr(
        StandIn,
        "answer",
        lambda self, operation, variables: (
            {"project": None} if operation == "ProjectInternalId" else answer(self, operation, variables)
        ),
    )
    result = command(server, home, "experiment=demo", f"output={output}")
    assert result.returncode == 2
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("attnlab: workspace: W&B did not take it (")
    assert str(output / "studies" / "demo") in line
    assert (output / "studies" / "demo" / "wandb_report.json").exists()
    assert not (output / "studies" / "demo" / "wandb_saved.json").exists()


def test_without_the_package_one_sentence_names_the_extra(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith(("wandb_workspaces", panels.__name__))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "wandb_workspaces", None)
    monkeypatch.delattr("attnlab.tracking.workspace.panels")
    with pytest.raises(UserError, match=r"pip install 'attnlab\[wandb-workspaces\]'"):
        save(facts(output / "studies"), output, None)


def test_what_was_saved_in_another_project_stays_as_it_is(output: Path) -> None:
    here, there = (facts(output, project=name) for name in ("a-project", "another"))
    saved = panels.workspace(here, "someone"), panels.report(here, "", None)
    saved[0]._internal_name, saved[0]._internal_id, saved[1].id = "nw-a-v", "view-1", "view-2"
    output.mkdir()
    save_module._remember(here, *saved)
    for known, wanted in ((here, ("nw-a-v", "view-1", "view-2")), (there, ("", "", ""))):
        again = panels.workspace(known, "someone"), panels.report(known, "", None)
        save_module._take_up(known, *again)
        assert (again[0]._internal_name, again[0]._internal_id, again[1].id) == wanted


@pytest.mark.parametrize("study", sorted(path.stem for path in (conf_dir() / "experiment").glob("*.yaml")))
def test_each_study_has_panels(study: str) -> None:
    known = facts_of(expanded(study), "a command")
    assert known.factors[0] == "attention.name"
    assert len(known.factors) == len(set(known.factors))
    made = panels.workspace(known, "")
    assert made.settings.max_runs >= len(known.run_ids)
    panels.report(known, "", None)


def test_a_study_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["workspace"]) == 2
    assert "experiment: got nothing" in capsys.readouterr().err
