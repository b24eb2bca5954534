"""What it takes for our value to agree with a printed one, and the row that says whether it does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from torch import Tensor

Ours = Any  # a number, a word, a tensor, or nested sequences of them

NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]\d+)?")


class Kind(StrEnum):
    """How a printed number can be had again."""

    exact = "exact"  # arithmetic: any machine, to the printed digits
    golden = "golden"  # a named random stream: any machine, to the printed digits
    shapes = "shapes"  # follows from the sizes, whatever the weights
    bound = "bound"  # a rounding difference: only an upper bound is reproducible
    released = "released"  # needs the released weights
    claim = "claim"  # a sentence without a number: measured by a study


class Outcome(StrEnum):
    passed = "pass"
    failed = "FAIL"
    needs_weights = "weights"  # not computed: give --released
    new = "new"  # other weights than the page's: our number, nothing to compare with
    claim = "claim"


def flatten(ours: Ours) -> Iterator[float | int | bool | str]:
    """Every number and word of nested sequences and tensors, in order."""
    match ours:
        case Tensor():
            yield from flatten(ours.tolist())
        case list() | tuple():
            for part in ours:
                yield from flatten(part)
        case _:
            yield ours


def like(value: float | int | bool | str, printed: str) -> str:
    """`value` written with as many digits as `printed`; words and infinities as they are."""
    if isinstance(value, (str, bool)) or not NUMBER.fullmatch(printed):
        return str(value)
    mantissa, exponent, _ = printed.partition("e")
    decimals = len(mantissa.partition(".")[2])
    text = f"{value:.{decimals}{'e' if exponent else 'f'}}"
    return text[1:] if float(text) == 0 and text.startswith("-") else text  # no negative zero


@dataclass(frozen=True)
class Digits:
    """Words must be equal, numbers equal once written with the printed digits."""

    printed: str  # words and numbers between blanks
    tolerance: str = "digits"

    def show(self, ours: Ours) -> str:
        """Our value in the printed form."""
        values, printed = list(flatten(ours)), self.printed.split()
        printed += printed[-1:] * (
            len(values) - len(printed)
        )  # more values than printed ones: shown, never equal
        return " ".join(like(value, text) for value, text in zip(values, printed, strict=False))

    def holds(self, ours: Ours) -> bool:
        """Whether every word and digit agrees."""
        return self.show(ours) == self.printed


@dataclass(frozen=True)
class AtMost:
    """A rounding difference, which depends on the machine: ours must not exceed a bound."""

    printed: str
    bound: float

    @property
    def tolerance(self) -> str:
        return f"<= {self.bound:.0e}"

    def show(self, ours: Ours) -> str:
        """The largest of our differences."""
        return f"{self._largest(ours):.1e}"

    def holds(self, ours: Ours) -> bool:
        """Whether all our differences lie within the bound."""
        return self._largest(ours) <= self.bound

    @staticmethod
    def _largest(ours: Ours) -> float:
        return max(float(value) for value in flatten(ours))


@dataclass(frozen=True)
class Shapes:
    """One or more shapes, equal in every axis."""

    shapes: tuple[tuple[int, ...], ...]
    tolerance: str = "equal"

    @property
    def printed(self) -> str:
        return self._text(self.shapes)

    def show(self, ours: Ours) -> str:
        """Our shapes."""
        return self._text(ours)

    def holds(self, ours: Ours) -> bool:
        """Whether every shape is equal."""
        return tuple(tuple(shape) for shape in ours) == self.shapes

    @staticmethod
    def _text(shapes: Ours) -> str:
        return " ".join("(" + ",".join(map(str, shape)) + ")" for shape in shapes)


@dataclass(frozen=True)
class Text:
    """A text, equal letter by letter."""

    printed: str
    tolerance: str = "equal"

    def show(self, ours: Ours) -> str:
        """Our text; lists of tokens are joined by blanks."""
        return " ".join(str(part) for part in flatten(ours))

    def holds(self, ours: Ours) -> bool:
        """Whether the texts are equal."""
        return self.show(ours) == self.printed


@dataclass(frozen=True)
class Claim:
    """A sentence of the page that a study tests: `claims` are the numbers of its pre-registered claims."""

    claims: str  # numbers of the pre-registered claims
    printed: str = "-"

    @property
    def tolerance(self) -> str:
        return self.claims

    def show(self, ours: Ours) -> str:
        """Nothing: a claim has no value here."""
        return "-"

    def holds(self, ours: Ours) -> bool:
        """Never called for a value."""
        raise ValueError("a claim is tested by a study, not here")


Rule = Digits | AtMost | Shapes | Text | Claim


@dataclass(frozen=True)
class Printed:
    """One printed result. `id` is its number in the list of results, with a part after a dot where it has several."""

    id: str
    what: str
    kind: Kind
    rule: Rule
    stream: str | None = None  # golden: where the random numbers come from

    @property
    def number(self) -> str:
        """S12 for S12.shape."""
        return self.id.partition(".")[0]


@dataclass(frozen=True)
class Row:
    """A printed result beside ours."""

    printed: Printed
    ours: str
    outcome: Outcome


def judge(printed: Printed, ours: Ours) -> Row:
    """Compare our value with the page's."""
    outcome = Outcome.passed if printed.rule.holds(ours) else Outcome.failed
    return Row(printed, printed.rule.show(ours), outcome)


def new_number(printed: Printed, ours: Ours) -> Row:
    """Our value on other weights than the page's. Only what holds for any weights is judged: rounding differences."""
    match printed.rule:
        case AtMost():
            return judge(printed, ours)
        case Digits():
            values = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in flatten(ours)]
            return Row(printed, " ".join(values), Outcome.new)
        case _:
            return Row(printed, printed.rule.show(ours), Outcome.new)
