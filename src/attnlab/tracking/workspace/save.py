"""Writes a study's workspace and report as JSON, and saves them in W&B where there is a key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.errors import UserError
from attnlab.tracking.files import require_writable, write_atomic
from attnlab.tracking.wandb_setup import import_wandb, require_answer, wandb_environment
from attnlab.tracking.workspace.facts import Facts

if TYPE_CHECKING:
    import wandb_workspaces.reports.v2 as wr
    import wandb_workspaces.workspaces as ws

SAVED = "wandb_saved.json"


def save(facts: Facts, output: Path, table: str | None) -> str:
    """Save both, and say where they are. A second call changes them in place.

    table: Markdown of the study's table, or None. Raises UserError without the package, and when W&B takes nothing.
    """
    with wandb_environment(output.absolute()):
        wandb = import_wandb()
        panels = _import_panels()
        written = _write(facts, panels.workspace(facts, ""), panels.report(facts, "", table))
        if not wandb.login(prompt=False, verify=False):
            return (
                f"no W&B key: the workspace and the report were written to {written[0]} and {written[1]}; `wandb login`, "
                "`attnlab sync` and this command again put them into W&B"
            )
        require_answer("workspace", wandb.setup().settings.base_url)
        try:
            entity = facts.entity or wandb.Api().default_entity
            workspace, report = panels.workspace(facts, entity), panels.report(facts, entity, table)
            _take_up(facts, workspace, report)
            workspace.save()
            report.save()
        except Exception as error:  # whatever W&B raises, what was written stays
            reason = (str(error) or type(error).__name__).strip().splitlines()[0]
            raise UserError(
                f"workspace: W&B did not take it ({reason}); track.project={facts.project} must exist there, as after "
                f"`attnlab sync`; what was to be saved lies in {facts.folder}"
            ) from error
        _remember(facts, workspace, report)
        return f"workspace {workspace.url}\nreport {report.url}"


def _import_panels() -> Any:
    try:
        from attnlab.tracking.workspace import panels
    except ImportError as error:
        raise UserError(
            f"workspace: needs the package {error.name}, which is not installed; run `pip install 'attnlab[wandb-workspaces]'`"
        ) from error
    return panels


def _write(facts: Facts, workspace: ws.Workspace, report: wr.Report) -> list[Path]:
    """What W&B would get, as its own JSON."""
    require_writable(facts.folder)
    specs = {
        "wandb_workspace.json": workspace._to_model().spec,
        "wandb_report.json": report._to_model().spec,
    }
    for name, spec in specs.items():
        text = json.dumps(
            spec.model_dump(mode="json", by_alias=True, exclude_none=True), indent=2, ensure_ascii=False
        )
        write_atomic(facts.folder / name, text + "\n")
    return [facts.folder / name for name in specs]


def _take_up(facts: Facts, workspace: ws.Workspace, report: wr.Report) -> None:
    """Give both the ids under which an earlier call saved them, so that no second ones appear."""
    path = facts.folder / SAVED
    if path.exists():
        saved = json.loads(path.read_text(encoding="utf-8"))
        if (saved["entity"], saved["project"]) == (workspace.entity, workspace.project):
            workspace._internal_name, workspace._internal_id = saved["workspace"]
            report.id = saved["report"]


def _remember(facts: Facts, workspace: ws.Workspace, report: wr.Report) -> None:
    saved = {
        "entity": workspace.entity,
        "project": workspace.project,
        "workspace": [workspace._internal_name, workspace._internal_id],
        "report": report.id,
    }
    write_atomic(facts.folder / SAVED, json.dumps(saved, indent=2) + "\n")
