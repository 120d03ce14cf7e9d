"""The verdict of a run, and the text that describes it where a test fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PASS, UNSUPPORTED = "PASS", "UNSUPPORTED"


@dataclass(frozen=True)
class Verdict:
    """The outcome of a run, the reason, and where its evidence is."""

    outcome: str
    """PASS, FAIL, INCONCLUSIVE, HARNESS or UNSUPPORTED; CANCELLED if the run was stopped."""

    reason: str
    run_dir: Path
    """The run folder, with all evidence."""

    report: Path | None = None
    """The page that shows the run, if it was written."""

    command: str = ""
    """A command that repeats the run, if there is one."""

    results: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    """A row of figures for each stream and subscriber: the `results` of `verdict.json`. A figure
    that the evidence does not show is absent.
    """

    checks: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    """What each check found: `name`, `outcome`, `text`, and what it is `about`."""

    @property
    def passed(self) -> bool:
        """Whether the outcome is PASS."""
        return self.outcome == PASS

    @property
    def text(self) -> str:
        """The outcome and the reason, and in further lines the run folder and the report."""
        return "\n".join([f"{self.outcome}: {self.reason}", *self.places()])

    def places(self) -> Iterator[str]:
        """Yield a line for each place where the run can be examined."""
        yield f"run folder: {self.run_dir}"
        if self.report is not None:
            yield f"report: {self.report}"
        if self.command:
            yield f"repeat: {self.command}"

    def assert_passed(self) -> None:
        """Raise AssertionError, with the reason, the run folder and the report, unless the run
        passed.
        """
        __tracebackhide__ = True
        if not self.passed:
            raise AssertionError(self.text)


def read_verdict(
    run_dir: Path, outcome: str, reason: str, report: Path | None, command: str = ""
) -> Verdict:
    """Return the verdict of a run folder. The outcome and the reason are the suite's: a suite also
    knows of runs that were never judged.
    """
    from windtunnel.harness.artifact.run.verdict import read_verdict as read
    from windtunnel.harness.artifact.run_dir import RunDir

    document = read(RunDir(run_dir).verdict) or {}
    results, checks = tuple(document.get("results", ())), tuple(document.get("checks", ()))
    return Verdict(outcome, reason, run_dir, report, command, results, checks)
