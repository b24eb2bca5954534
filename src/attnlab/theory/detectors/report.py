"""What `detect` returns: mistakes first, then every check with its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from attnlab.theory.detectors.checks import Check, Finding
from attnlab.theory.detectors.diagnosis import Diagnosis, Mistake

WORDS = {True: "ALARM", False: "ok", None: "-"}


@dataclass(frozen=True)
class Report:
    """Printable; `ok` is True where no check raised an alarm."""

    name: str
    findings: Sequence[Finding]
    diagnoses: Sequence[Diagnosis]

    @property
    def ok(self) -> bool:
        """No alarm."""
        return not self.alarms

    @property
    def alarms(self) -> list[Check]:
        """The checks that raised one."""
        return [finding.check for finding in self.findings if finding.alarm]

    @property
    def mistakes(self) -> list[Mistake]:
        """The mistakes that explain the alarms."""
        return [diagnosis.mistake for diagnosis in self.diagnoses]

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {
            "name": self.name,
            "ok": self.ok,
            "mistakes": [
                {"mistake": d.mistake.name, "says": d.mistake.value, "because": d.because, "fix": d.fix}
                for d in self.diagnoses
            ],
            "checks": [{**asdict(finding), "check": finding.check.value} for finding in self.findings],
        }

    def __str__(self) -> str:
        run = sum(finding.alarm is not None for finding in self.findings)
        lines = [f"{self.name}: no mistake found by {run} checks"]
        if not self.ok:
            count = len(self.diagnoses)
            lines = [f"{self.name}: {count} mistake{'s' if count > 1 else ''}"]
        for diagnosis in self.diagnoses:
            lines += [
                f"  {diagnosis.mistake.value}",
                f"    because  {diagnosis.because}",
                f"    fix      {diagnosis.fix}",
            ]
        lines.append("")
        for finding in self.findings:
            lines.append(f"  {finding.check.value:20}{WORDS[finding.alarm]:7}{finding.says}")
        return "\n".join(lines)
