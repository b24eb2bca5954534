"""The explorer's data: every folder a row, whatever state it is in, and nothing from outside of the outputs."""

import json
from dataclasses import replace

import pytest
from made_runs import lab, losses, write
from scipy import stats

from attnlab.cli import main
from attnlab.errors import UserError
from attnlab.report.html import embedded
from attnlab.report.runs import Reader
from attnlab.tracking.folder import RunFolder, folder_of
from attnlab.tracking.status import State, Status

SECRET = '{"step": 1, "secret": 42}\n'


@pytest.fixture
def made(tmp_path):
    found = lab(tmp_path / "outputs", ["correct", "zero_fill"], [1, 2])
    for planned in found.runs[:3]:
        write(planned.config)
    return found


def shown(made):
    return json.loads(embedded(vars(Reader(made.output).page("t"))))


def run_of(page, run_id):
    return next(run for run in page["runs"] if run["id"] == run_id)


def test_every_run_is_there_with_its_settings_and_numbers(made):
    page = shown(made)
    assert len(page["runs"]) == 3
    for planned in made.runs[:3]:
        run = run_of(page, folder_of(planned.config).path.name)
        known = page["common"] | run["config"]
        assert (run["state"], run["step"]) == ("done", 200)
        assert known["attention.name"] == planned.config.attention.name
        assert known["seed"] == planned.config.seed
        assert known["train.lr"] == planned.config.train.lr
        assert run["results"]["final/dev/nll"] == losses(planned.config)[0]


def test_what_all_runs_share_is_stored_once(made):
    page = shown(made)
    assert "attention.name" not in page["common"]
    assert page["common"]["model.name"] == "nano"
    assert all(not run["config"].keys() & page["common"].keys() for run in page["runs"])


def test_a_running_a_killed_and_a_failed_run(made):
    last = made.runs[3].config
    folder = write(last, state=State.failed)
    assert (
        run_of(shown(made), folder.path.name)["state"],
        run_of(shown(made), folder.path.name)["error"],
    ) == ("failed", "no luck")
    folder.save_status(Status(State.running, step=20))
    assert run_of(shown(made), folder.path.name)["state"] == "interrupted"  # nobody holds its lock
    with folder.locked():
        assert run_of(shown(made), folder.path.name)["state"] == "running"


@pytest.mark.parametrize("file", ["config.yaml", "status.json", "metrics.jsonl"])
@pytest.mark.parametrize("content", [b"\xff\xfe", b"{", b"[1, 2]\n"])
def test_a_damaged_folder_is_a_row_that_says_so(made, file, content):
    folder = folder_of(made.runs[0].config)
    (folder.path / file).write_bytes(content)
    page = shown(made)
    assert len(page["runs"]) == 3
    run = run_of(page, folder.path.name)
    if file == "metrics.jsonl" and content != b"[1, 2]\n":
        assert run["state"] == "done"  # a torn last line is left out, as everywhere
    else:
        assert run["state"] == "unreadable"
        assert content.decode("latin-1").strip() not in run["error"]


def test_folders_that_are_no_runs_are_not_read(made):
    runs = made.output / "runs"
    (runs / "0123456789.aside-1").mkdir()
    (runs / "notes.txt").write_text("x")
    (runs / "empty").mkdir()
    page = shown(made)
    assert len(page["runs"]) == 4
    assert run_of(page, "empty")["state"] == "unreadable"


def test_a_link_out_of_the_outputs_is_not_followed(made, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "metrics.jsonl").write_text(SECRET)
    (made.output / "runs" / "linked").symlink_to(elsewhere)
    page = shown(made)
    assert len(page["runs"]) == 3
    assert [note for note in page["notes"] if note.startswith("linked: left out")]


@pytest.mark.parametrize("file", ["config.yaml", "status.json", "metrics.jsonl"])
def test_a_file_that_is_a_link_out_of_its_folder_is_not_read(made, tmp_path, file):
    (tmp_path / "secret").write_text(SECRET)
    path = folder_of(made.runs[0].config).path
    (path / file).unlink()
    (path / file).symlink_to(tmp_path / "secret")
    page = shown(made)
    assert run_of(page, path.name)["state"] == "unreadable"
    assert "secret" not in json.dumps(page["curves"]) + json.dumps(run_of(page, path.name)["results"])


def test_an_outputs_folder_that_is_itself_a_link_is_read(made, tmp_path):
    (tmp_path / "link").symlink_to(made.output)
    assert len(Reader(tmp_path / "link").page("t").runs) == 3


def test_the_version_changes_with_a_run_alone(made):
    reader = Reader(made.output)
    before = reader.version()
    assert reader.version() == before
    folder = folder_of(made.runs[0].config)
    folder.metrics.append({"step": 300, "dev/nll": 1.0})
    folder.metrics.close()
    assert reader.version() != before


def test_the_version_changes_when_a_run_is_killed(made):
    """No file changes then; its lock is free."""
    reader, folder = Reader(made.output), folder_of(made.runs[0].config)
    with folder.locked():
        folder.save_status(Status(State.running, step=20))
        assert {run.state for run in reader.page("t").runs} == {"done", "running"}
        alive = reader.version()
        assert reader.version() == alive
    assert reader.version() != alive
    assert {run.state for run in reader.page("t").runs} == {"done", "interrupted"}


def test_a_run_is_read_again_when_it_has_changed(made):
    reader = Reader(made.output)
    first = reader.page("t")
    folder = folder_of(made.runs[0].config)
    folder.metrics.append({"step": 300, "dev/nll": 1.0})
    folder.metrics.close()
    second = reader.page("t")
    steps = {run.id: run.step for run in second.runs}
    assert steps[folder.path.name] == 300
    assert sum(one is not two for one, two in zip(first.runs, second.runs, strict=True)) >= 1


def test_only_the_runs_that_are_asked_for(made):
    wanted = {folder_of(made.runs[0].config).path.name}
    assert {run.id for run in Reader(made.output).page("t", wanted).runs} == wanted


def test_t_quantiles_are_students(made):
    assert shown(made)["t"][:3] == pytest.approx([12.7062, 4.30265, 3.18245], abs=1e-4)  # any table of them
    assert shown(made)["t"][119] == pytest.approx(stats.t.isf(0.025, 120), abs=1e-4)


def test_a_run_of_another_version_with_other_settings(made):
    """A setting that a run lacks is no setting of all."""
    path = folder_of(made.runs[0].config).path / "config.yaml"
    path.write_text(path.read_text().replace("fail_fast: false\n", ""))
    page = shown(made)
    assert "fail_fast" not in page["common"]
    assert sum("fail_fast" in run["config"] for run in page["runs"]) == 2


def test_no_runs_at_all(tmp_path, capsys):
    (tmp_path / "none" / "runs").mkdir(parents=True)
    assert main(["report", f"output={tmp_path / 'none'}"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "none" / "reports" / "runs.html")


def test_a_folder_without_runs_is_one_sentence(tmp_path, capsys):
    assert main(["report", f"output={tmp_path / 'nope'}"]) == 2
    assert "where no runs/ is" in capsys.readouterr().err
    assert not (tmp_path / "nope").exists()


def test_out_names_the_file_and_serve_has_none(made, tmp_path, capsys):
    assert main(["report", f"output={made.output}", "--out", str(tmp_path / "deep" / "x.html")]) == 0
    assert (tmp_path / "deep" / "x.html").stat().st_size > 4_000_000
    assert main(["report", f"output={made.output}", "--out", "x.html", "--serve"]) == 2
    assert "--out: got x.html with --serve" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_one_sentence(made, tmp_path):
    from attnlab.report import command

    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        command.run(
            [f"output={made.output}"],
            out=tmp_path / "file" / "x.html",
            allow_mixed=False,
            partial=False,
            port=None,
        )


def test_names_and_values_are_kept_as_they_are(tmp_path):
    made = lab(tmp_path / "outputs", ["correct"], [1])
    config = made.runs[0].config
    name = "<script>\"'&\u202e"
    folder = write(replace(config, attention=replace(config.attention, name=name)))
    assert (shown(made)["common"])["attention.name"] == name
    assert RunFolder(folder.path).read_status().state is State.done
