"""Summarizes how trials of real drivers differ from those of Windtunnel's with equal seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from windtunnel.harness.simulator.swarm.result import Result
from windtunnel.harness.simulator.swarm.trial_figures import compare, kind_of


@dataclass
class _Figure:
    """One figure over all trials."""

    ours: int = 0
    tested: int = 0
    different: int = 0
    """Number of trials in which it differs."""
    example: Result | None = None
    """The trial with the fewest frames in which it differs."""


class Comparison:
    """The totals of all figures, and the number of trials with each kind of difference."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self._figures: dict[str, _Figure] = {}

    def add(self, result: Result) -> None:
        """Add a trial that ran with both drivers. Others are ignored."""
        if not result.figures or not result.ours:
            return
        differences = compare(result.ours, result.figures)
        self.kinds[kind_of(differences)] += 1
        for name in result.ours.keys() | result.figures.keys():
            figure = self._figures.setdefault(name, _Figure())
            figure.ours += result.ours.get(name, 0)
            figure.tested += result.figures.get(name, 0)
            if name in differences:
                figure.different += 1
                if figure.example is None or result.frames < figure.example.frames:
                    figure.example = result

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each figure, with totals and the smallest example of a difference."""
        return [
            {
                "figure": name,
                "ours": each.ours,
                "tested": each.tested,
                "different_trials": each.different,
                "example_seed": each.example.seed if each.example else None,
                "example_ours": each.example.ours.get(name, 0) if each.example else None,
                "example_tested": each.example.figures.get(name, 0) if each.example else None,
            }
            for name, each in sorted(self._figures.items())
        ]

    def lines(self) -> Iterator[str]:
        """Yield the lines of a table."""
        found = (f"{count} {kind}" for kind, count in sorted(self.kinds.items()))
        yield f"compared with `ours`: {', '.join(found)}"
        yield f"{'figure':24}{'ours':>14}{'tested':>14}{'trials':>8}  smallest example"
        for row in self.rows:
            example = ""
            if row["example_seed"] is not None:
                example = f"seed {row['example_seed']}: {row['example_ours']} and "
                example += f"{row['example_tested']}"
            yield (
                f"{row['figure']:24}{row['ours']:>14}{row['tested']:>14}"
                f"{row['different_trials']:>8}  {example}".rstrip()
            )
