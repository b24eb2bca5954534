"""The panels of a study, as wandb-workspaces' objects; a workspace and a report show the same ones.

A run may belong to several studies and W&B's group names only the one that trained it, so a study's runs are chosen by
their ids. Curves are means over the runs of a cell, with their range: W&B has no intervals and no paired differences,
so the table of means is the one of `attnlab table`.
"""

from __future__ import annotations

import wandb_workspaces.reports.v2 as wr
import wandb_workspaces.workspaces as ws
from wandb_workspaces import expr
from wandb_workspaces.reports.v2.interface import BlockTypes, PanelTypes, SummaryOrConfigOnlyMetric

from attnlab.config import Site
from attnlab.tracking.workspace.facts import Facts

COLUMNS = ("final/dev/nll", "final/dev/prefix_nll", "final/dev/leak_gap")


def workspace(facts: Facts, entity: str) -> ws.Workspace:
    """The saved view of the project: the study's runs, grouped by cell, with its columns and panels."""
    return ws.Workspace(
        entity=entity,
        project=facts.project,
        name=f"study {facts.study}",
        auto_generate_panels=True,
        sections=[
            ws.Section(name=title, panels=panels, is_open=True, layout_settings=ws.SectionLayoutSettings(columns=2))
            for title, panels in sections(facts)
        ],
        settings=ws.WorkspaceSettings(group_by_prefix="first", max_runs=max(10, len(facts.run_ids))),
        runset_settings=ws.RunsetSettings(
            filters=_own_runs(facts),
            groupby=[expr.Config(key) for key in facts.factors],
            pinned_columns=columns(facts),
        ),
    )  # fmt: skip


def report(facts: Facts, entity: str, table: str | None) -> wr.Report:
    """The same panels as a page to read. table: Markdown of the study's table, None where there is none yet.

    entity: empty for a report that is only written; W&B is asked about the project otherwise.
    """
    runs = wr.Runset(
        entity=entity,
        project=facts.project if entity else "",
        name=f"study {facts.study}",
        filters=_own_runs(facts),
        groupby=[f"config.{key}" for key in facts.factors],
        pinned_columns=columns(facts),
    )
    control = "" if facts.control is None else f" Compared with: {facts.control}."
    missing = f"There is none yet: {facts.command}, then attnlab table experiment={facts.study}."
    blocks: list[BlockTypes] = [
        wr.P(f"{facts.question}{control} Runs: {facts.command}"),
        wr.H2("The table"),
        wr.P(missing) if table is None else wr.MarkdownBlock(table),
    ]
    for title, panels in sections(facts):
        for place, panel in enumerate(panels):
            panel.layout = wr.Layout(x=12 * (place % 2), y=8 * (place // 2), w=12, h=8)  # type: ignore[union-attr]
        blocks += [wr.H2(title), wr.PanelGrid(runsets=[runs], panels=panels)]
    return wr.Report(
        project=facts.project, entity=entity, title=f"attnlab {facts.study}", description=facts.question,
        blocks=blocks, width="fluid",
    )  # fmt: skip


def sections(facts: Facts) -> list[tuple[str, list[PanelTypes]]]:
    """Title and panels of each section, in the order in which they are to be read."""
    return [
        ("Loss against translation", _leak(facts)),
        ("While it trains", _curves("dev/prefix_nll", "dev/nll", "dev/leak_gap", "train/loss/nll", unit="nats a token")),
        ("Inside the softmax", [panel for site in Site for panel in _softmax(site)]),
        ("Gradients", [*_curves("train/grad/norm", log=True), *(_gradients(site) for site in Site)]),
        ("Attention and translations", _looks(facts)),
    ]  # fmt: skip


def _own_runs(facts: Facts) -> expr.And:
    return expr.And(
        expr.Config("run_id.value").isin(list(facts.run_ids))
    )  # ".value" as W&B's own pages write it


def columns(facts: Facts) -> list[str]:
    """The table of runs: what tells the cells apart, then what came out."""
    factors = [
        f"config:{head}.value.{rest}" for head, _, rest in (key.partition(".") for key in facts.factors)
    ]
    protocol = facts.bleu.rpartition("/")[0]
    results = (*COLUMNS, facts.bleu, f"{protocol}/length_ratio", f"{protocol}/empty")
    return [
        "run:displayName",
        *factors,
        "config:seed.value",
        "summary:run/state",
        *(f"summary:{name}" for name in results),
    ]


def _leak(facts: Facts) -> list[PanelTypes]:
    teacher_forced, bleu = wr.SummaryMetric("final/dev/nll"), wr.SummaryMetric(facts.bleu)
    prefix = wr.SummaryMetric("final/dev/prefix_nll")
    axes: list[tuple[SummaryOrConfigOnlyMetric, str]] = [(wr.Config(key), key) for key in facts.factors]
    axes += [(teacher_forced, "dev nll"), (prefix, "prefix nll"), (bleu, "BLEU")]
    return [
        wr.ScatterPlot(title="BLEU against the teacher-forced dev nll: low and worthless is a leak", x=teacher_forced, y=bleu),
        wr.ScatterPlot(title="dev nll from the prefix against teacher-forced: equal without a leak", x=teacher_forced, y=prefix),
        wr.ParallelCoordinatesPlot(
            title="Factors and results",
            columns=[wr.ParallelCoordinatesPlotColumn(metric=metric, display_name=name) for metric, name in axes],
        ),
    ]  # fmt: skip


def _softmax(site: Site) -> list[PanelTypes]:
    own = ["probe/future_mass/decoder", "probe/row_sum/decoder"] if site is Site.decoder else []
    return [
        *_curves(f"probe/entropy_normalized/{site}", f"probe/jacobian_trace/{site}", *own, unit="0 to 1"),
        *_curves(f"probe/logit_std/{site}"),
    ]


def _gradients(site: Site) -> PanelTypes:
    """Median beside rms: footnote 4 is true of the one and false of the other."""
    return wr.LinePlot(
        title=f"gradient to the scores, {site}: median and rms",
        y=[f"probe/grad_scores_median/{site}", f"probe/grad_scores_rms/{site}"],
        title_x="step", title_y="nats per unit", log_y=True, groupby_aggfunc="mean", groupby_rangefunc="minmax",
    )  # fmt: skip


def _curves(*metrics: str, unit: str | None = None, log: bool | None = None) -> list[PanelTypes]:
    return [
        wr.LinePlot(
            title=f"{metric}: mean and range over the seeds", y=[metric], title_x="step", title_y=unit, log_y=log,
            groupby_aggfunc="mean", groupby_rangefunc="minmax",
        )
        for metric in metrics
    ]  # fmt: skip


def _looks(facts: Facts) -> list[PanelTypes]:
    maps: list[PanelTypes] = [
        wr.MediaBrowser(
            title=f"{site}: the same sentence in each run",
            media_keys=[f"test/attention/{site}/layer{layer}" for layer in range(1, facts.layers[site] + 1)],
            num_columns=4,
        )
        for site in Site
    ]
    return [*maps, wr.WeavePanelSummaryTable(table_name="test/translations")]
