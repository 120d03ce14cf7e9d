"""Outcomes inferred from captures match the middlebox's decisions, in scenarios that affect DATA.

    python -m tests.soak.frame_outcomes [SCENARIO ...] [--out FOLDER]

Runs over real sockets, with less traffic than the files specify. Captures of both ends must agree
with the decisions about every frame, the receiver's capture alone with at least 99.9 % of them.
Exits with 1 if any does not.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.netns.test_frame_outcomes import synthetic_run
from tests.stand_ins.checked_outcomes import ONE_POINT_SHARE, agreements, check_joined_outcomes

SCENARIOS = (
    "loss/reliable-2pct", "loss/unreliable-2pct", "loss/gilbert-elliott", "loss/four-state",
    "loss/range-first-pass", "loss/range-first-three-passes", "loss/last-frame-of-term",
    "loss/nak-only", "copies/data", "copies/stale-data", "order/across-term-change",
    "order/displacement", "order/past-gap-fill", "order/past-nak-delay",
    "reorder/reliable-swap-and-hold", "matrix/loss", "matrix/loss-unreliable", "matrix/reorder",
    "exam/disorder", "exam/bursts", "exam/unreliable-late",
)  # fmt: skip


def agreeing_share(name: str, folder: Path) -> tuple[int, float]:
    """Return the number of frames that arrived, and the share of them for which one capture implies
    the same outcome as two."""
    made = synthetic_run(name, folder)
    agreed = agreements(made, folder, check_joined_outcomes(made, folder))
    return len(agreed), sum(agreed) / len(agreed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.soak.frame_outcomes", description=__doc__)
    parser.add_argument("scenarios", nargs="*", default=SCENARIOS)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    wrong = 0
    for name in options.scenarios:
        folder = Path(tempfile.mkdtemp(prefix="windtunnel-outcomes-", dir=options.out))
        try:
            frames, share = agreeing_share(name, folder)
        except AssertionError as error:
            wrong += 1
            print(f"{name}: two captures differ from the decisions: {error}; {folder}", flush=True)
            continue
        is_enough = share >= ONE_POINT_SHARE
        wrong += not is_enough
        print(f"{name}: {frames} frames, one capture agrees on {share:.3%}", flush=True)
        if is_enough:
            shutil.rmtree(folder)
        else:
            print(f"  at least {ONE_POINT_SHARE:.1%} are required; {folder}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
