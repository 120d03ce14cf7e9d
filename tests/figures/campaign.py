"""Runs random scenarios and prints the figures that differ.

Usage: python -m tests.figures.campaign FIRST_SEED LAST_SEED [sim|netns]
"""

import sys
import tempfile
from pathlib import Path

from tests.figures.random_run import differences_of
from tests.figures.random_scenario import random_document

PROGRESS = 50
"""Number of scenarios after which the state of the campaign is printed."""


def main(first: int, last: int, fidelity: str) -> int:
    failed = 0
    for seed in range(first, last + 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = differences_of(random_document(seed, fidelity), Path(folder))
            except Exception as error:
                found = [f"{type(error).__name__}: {error}"]
        failed += bool(found)
        if found:
            print(f"seed {seed}: {len(found)}", *found[:6], sep="\n    ", flush=True)
        if (seed - first) % PROGRESS == PROGRESS - 1:
            print(
                f"{seed + 1 - first} of {last + 1 - first} scenarios, {failed} with differences",
                flush=True,
            )
    print(f"{last + 1 - first - failed} of {last + 1 - first} scenarios without a difference")
    return min(failed, 1)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), int(sys.argv[2]), (*sys.argv[3:], "sim")[0]))
