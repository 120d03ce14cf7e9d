"""Runs random scenarios in simulations and prints the verdicts that no sound driver deserves.

Usage: python -m tests.soak.random_scenarios FIRST_SEED LAST_SEED [ours|pyaeron] [FOLDER]

Folders of wrong runs are kept in FOLDER, `runs/soak` by default. Exits with 1 if there are any.
"""

import collections
import shutil
import sys
import tempfile
from pathlib import Path

from tests.sim.random_scenarios import write, wrong
from tests.sim.simulated import run
from windtunnel.harness.orchestrate.subjects.peers import pair

REPOSITORY = Path(__file__).resolve().parents[2]


def main(first: int, last: int, driver: str, kept: Path) -> int:
    counts: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        tested = pair(driver, driver, "sim", folder / "store")
        for seed in range(first, last + 1):
            path = write(seed, folder)
            if path is None:
                counts["refused"] += 1
                continue
            result = run(path, folder, tested=tested)
            counts[result.outcome] += 1
            if text := wrong(result):
                counts["wrong"] += 1
                shutil.copytree(result.run_dir, kept / f"{driver}-{seed}", dirs_exist_ok=True)
                print(f"seed {seed}: {text}", flush=True)
            shutil.rmtree(result.run_dir)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    return min(counts["wrong"], 1)


if __name__ == "__main__":
    drivers, folders = [*sys.argv[3:4], "ours"], [*sys.argv[4:], REPOSITORY / "runs" / "soak"]
    raise SystemExit(main(int(sys.argv[1]), int(sys.argv[2]), drivers[0], Path(folders[0])))
