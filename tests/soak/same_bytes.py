"""The same seed loses the same bytes, run after run, for every driver and at every fidelity.

    python -m tests.soak.same_bytes [--runs 10] [--fidelity netns compose] [--peers ours pyaeron]

The scenario fixes its initial term and draws for each frame, one frame per datagram. Compares the
set of dropped ranges (direction, stream, first byte, last byte, attempt) of each run with that of
the first. Exits with 1 if one differs, or if a run did not pass or lost nothing.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import cast

from windtunnel.harness.artifact.middlebox import decision
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.fidelity import Fidelity
from windtunnel.harness.orchestrate.subjects import peers
from windtunnel.harness.orchestrate.suite.runner import run_suite

REPOSITORY = Path(__file__).resolve().parents[2]
SCENARIO = REPOSITORY / "scenarios" / "matrix" / "loss.yaml"
SEED = 7

Lost = frozenset[tuple[int, int, int, int, int]]


def lost_ranges(folder: RunDir) -> Lost:
    """Return the ranges of the stream that the middlebox dropped, by position and attempt."""
    found = decision.read_decisions(folder.decisions)
    if found is None:
        return frozenset()
    taken = found[(found["action"] == decision.DROP) & (found["timing_sensitive"] == 0)]
    names = ("link", "stream_id", "position", "frame_length", "attempt")
    return frozenset(zip(*(taken[name].tolist() for name in names), strict=True))


def compare(fidelity: Fidelity, peer: str, runs: int, out: Path) -> tuple[Lost, int]:
    """Run one driver; return the first set and the number of runs that differ."""
    tested = peers.pair(peer, peer, fidelity, out / peers.STORE)
    first: Lost = frozenset()
    wrong = 0
    for index in range(runs):
        result = run_suite(
            [SCENARIO], fidelity=fidelity, seed=SEED, seeds=1, out=out, tested=tested
        )
        run = result.runs[0]
        lost = lost_ranges(RunDir(run.run_dir))
        first = first or lost
        agrees = lost == first and bool(lost)
        print(
            f"{fidelity} {peer} {index + 1}/{runs}: {run.outcome}, {len(lost)} ranges lost, "
            f"{len(lost ^ first)} unlike the first run",
            flush=True,
        )
        wrong += run.outcome != "PASS" or not agrees
        shutil.rmtree(result.suite_dir)
    return first, wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.soak.same_bytes", description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--fidelity", nargs="+", default=["netns", "compose"])
    parser.add_argument("--peers", nargs="+", default=["ours", "pyaeron"])
    options = parser.parse_args()
    wrong = 0
    sets: dict[Lost, list[str]] = {}
    (REPOSITORY / "runs").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=REPOSITORY / "runs") as folder:
        for fidelity in options.fidelity:
            for peer in options.peers:
                lost, bad = compare(cast("Fidelity", fidelity), peer, options.runs, Path(folder))
                sets.setdefault(lost, []).append(f"{fidelity} {peer}")
                wrong += bad
    for lost, where in sets.items():
        print(f"{len(lost)} ranges: {', '.join(where)}")
    print(f"{wrong} runs are wrong; {len(sets)} different sets")
    return 1 if wrong or len(sets) != 1 else 0


if __name__ == "__main__":
    sys.exit(main())
