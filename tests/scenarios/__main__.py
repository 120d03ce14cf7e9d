"""Runs each class of faults once with its planted defect: the verdict must be FAIL.

    python -m tests.scenarios [PATTERN...]    classes whose names contain one of these; default: all

A run of the scenario with the sound driver comes first: it must not FAIL. Needs the rights of a
lab; exits with 1 if any outcome is another one.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.scenarios.fault_classes import Row, rows
from windtunnel.harness.orchestrate.subjects.subject import SABOTAGES

REPOSITORY = Path(__file__).resolve().parents[2]
SOUND = ("PASS", "INCONCLUSIVE")


def outcome_of(row: Row, out: str, *more: str) -> tuple[str, str]:
    """Return the outcome of a run of a class's scenario, and the reason."""
    argv = [
        sys.executable,
        "-m",
        "windtunnel.harness",
        "run",
        str(row.scenario),
        "--fidelity",
        "netns",
    ]
    argv += ["--json", "--out", out, *more]
    argv += ["--backend", row.backend] if row.backend else []
    done = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    run = next((line for line in lines if "reason" in line), None)
    return ("none", done.stderr[-200:]) if run is None else (run["outcome"], run["reason"])


def main() -> int:
    """Run the requested classes; see the module's docstring."""
    patterns = sys.argv[1:] or [""]
    wrong = 0
    for row in rows():
        if not any(each in row.name for each in patterns):
            continue
        kind = "--sabotage" if row.defect in SABOTAGES else "--mutant"
        with tempfile.TemporaryDirectory() as out:
            sound, why = outcome_of(row, out)
            defective, reason = outcome_of(row, out, kind, str(row.defect))
        is_right = sound in SOUND and defective == "FAIL"
        wrong += not is_right
        mark = "ok   " if is_right else "WRONG"
        print(f"{mark} {row.name}: {sound}; with {row.defect}: {defective}", flush=True)
        print(f"      {why}\n      {reason}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
