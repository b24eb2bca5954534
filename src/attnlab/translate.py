"""A finished run as a translator, and the loading of its model for anything that looks at it afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TextIO, cast

from omegaconf import DictConfig, OmegaConf

from attnlab.compose import typed
from attnlab.config import Config, Protocol
from attnlab.errors import UserError
from attnlab.terminal import printable
from attnlab.tracking.folder import RunFolder
from attnlab.tracking.status import State

if TYPE_CHECKING:
    from attnlab.data.tokenizer import Tokenizer
    from attnlab.model.transformer import Transformer

LINES = 512  # read and answered at once, so that a pipe shows results while it is fed


class Trained(NamedTuple):
    """A run's model with its final weights, in eval mode on the CPU."""

    config: Config
    model: Transformer
    tokenizer: Tokenizer


def find_run(run: str, output: Path) -> tuple[Path, Config]:
    """Folder and config of a run id or folder, before torch is loaded. Raises UserError where no finished run is."""
    places = (Path(run), output / "runs" / run)
    folder = next((place for place in places if _exists(place / "config.yaml")), None)
    if folder is None:
        raise UserError(f"run: got '{run}', allowed: a run id below {output / 'runs'}, or a run's folder")
    config = _read_config(folder / "config.yaml")
    status = RunFolder(folder).read_status()
    if status is None or status.state is not State.done:
        found = "unfinished" if status is None else status.state
        raise UserError(f"run: got '{run}', which is {found}, allowed: a run that is done")
    return folder, config


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long for a file
        return False


def _read_config(path: Path) -> Config:
    try:
        return typed(cast("DictConfig", OmegaConf.load(path)))
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except Exception as error:  # what is no YAML, or no mapping
        reason = str(error).split("\n")[0][:120]
        raise UserError(
            f"{path}: got a damaged file ({type(error).__name__}: {reason}), allowed: as the run wrote it"
        ) from None


def load_run(run: str, output: Path) -> Trained:
    """The model of a run id or folder. Raises UserError where there is no finished run."""
    folder, config = find_run(run, output)

    from attnlab.data.tokenizer import Tokenizer
    from attnlab.model.initialise import build
    from attnlab.training import checkpoint

    state = checkpoint.load(folder / "checkpoint.pt")
    try:
        tokenizer = Tokenizer((folder / "tokenizer.model").read_bytes())
        model = build(config.model, config.attention, tokenizer.vocab_size, config.seed)
        model.load_state_dict(state["model"])
    except Exception as error:  # of files that were cut or exchanged: whatever torch and sentencepiece raise
        reason = str(error).split("\n")[0][:120]
        raise UserError(
            f"run: got '{run}', whose weights, vocabulary and config.yaml do not belong together ({reason}), allowed: a "
            "run's folder as it was written"
        ) from None
    return Trained(config, model.eval(), tokenizer)


def translate_lines(
    run: str, output: Path, protocol: str, beam: int | None, lines: BinaryIO, target: TextIO
) -> None:
    """Translate each line of `lines` (UTF-8) and write one line each, in order.

    A file or a pipe gets the translations as they are, a terminal their control characters spelled out.
    """
    if protocol not in [*Protocol]:
        raise UserError(f"--protocol: got '{protocol}', allowed: {', '.join(Protocol)}")
    if beam is not None and beam < 1:
        raise UserError(f"--beam: got {beam}, allowed: at least 1")
    trained = load_run(run, output)
    config = trained.config.decode if beam is None else replace(trained.config.decode, beam=beam)

    from attnlab.measure.decode import translate

    shown = printable if target.isatty() else str
    waiting: list[str] = []

    def answer() -> None:
        texts = [text for text in waiting if text.strip()]
        answers = iter(translate(trained.model, trained.tokenizer, texts, config, Protocol(protocol)))
        for text in waiting:  # an empty line has nothing to translate
            target.write((shown(next(answers)) if text.strip() else "") + "\n")
        target.flush()
        waiting.clear()

    for number, line in enumerate(lines, start=1):
        try:
            waiting.append(line.decode("utf-8").rstrip("\r\n"))
        except UnicodeDecodeError as error:
            raise UserError(
                f"stdin: line {number} is not UTF-8 ({error.reason}), allowed: UTF-8 text"
            ) from None
        if len(waiting) == LINES:
            answer()
    if waiting:
        answer()
