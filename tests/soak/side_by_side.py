"""Parallel runs have the same verdicts and lose the same bytes as sequential ones.

    python -m tests.soak.side_by_side [--jobs 4] [--seed 7] [--fidelity netns]

Every run has its own namespaces, directories and addresses, so runs can affect each other only by
the processors that they share. The scenarios are those of `scenarios/matrix`, whose losses depend
on positions and attempts alone. The number of retransmissions depends on timing, so only the losses
of first transmissions must be the same. Exits with 1 if a verdict or such a range differs.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import cast

from tests.soak.same_bytes import Lost, lost_ranges
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.fidelity import Fidelity
from windtunnel.harness.orchestrate.suite.runner import run_suite

REPOSITORY = Path(__file__).resolve().parents[2]
SCENARIOS = REPOSITORY / "scenarios" / "matrix"


def make(fidelity: Fidelity, seed: int, jobs: int, out: Path) -> dict[str, tuple[str, Lost]]:
    """Return each scenario's verdict and the ranges that its run lost."""
    result = run_suite(
        sorted(SCENARIOS.glob("*.yaml")), fidelity=fidelity, seed=seed, seeds=1, jobs=jobs, out=out
    )
    made = {run.scenario: (run.outcome, lost_ranges(RunDir(run.run_dir))) for run in result.runs}
    shutil.rmtree(result.suite_dir)
    return made


def _first_passages(lost: Lost) -> Lost:
    return frozenset(each for each in lost if each[-1] == 1)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.soak.side_by_side", description=__doc__)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--fidelity", default="netns")
    options = parser.parse_args()
    fidelity = cast("Fidelity", options.fidelity)
    (REPOSITORY / "runs").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=REPOSITORY / "runs") as folder:
        alone = make(fidelity, options.seed, 1, Path(folder))
        beside = make(fidelity, options.seed, options.jobs, Path(folder))
    wrong = 0
    for scenario, (outcome, lost) in alone.items():
        other, other_lost = beside[scenario]
        first, other_first = _first_passages(lost), _first_passages(other_lost)
        again = (lost - first) ^ (other_lost - other_first)
        differs = outcome != other or first != other_first
        print(
            f"{scenario}: {outcome} alone, {other} beside others; {len(first)} ranges lost, "
            f"{len(first ^ other_first)} differ, {len(again)} of those sent again"
            f"{'  <--' if differs else ''}",
            flush=True,
        )
        wrong += differs
    print(f"{wrong} of {len(alone)} scenarios differ with {options.jobs} runs at a time")
    return 1 if wrong or not alone else 0


if __name__ == "__main__":
    sys.exit(main())
