"""Kills the harness (SIGKILL) at random moments: nothing may be left, and the next run must work
without cleanup.

    python -m tests.killed [--moments 50] [--seed N] [--fidelity netns]

    run ........X SIGKILL          a moment between the start and the end of a whole run
        next run ............      at once, without any cleanup: it must reach a verdict
        processes, namespaces, directories and records of the killed harness: removed without
        cleanup within 10 s, or else by `windtunnel clean`

Needs the privileges of a lab. The seed is printed first, and each moment with its outcome; exits
with 1 if anything was left after `windtunnel clean` or a next run did not work.
"""

import argparse
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from windtunnel.harness.orchestrate.teardown import state
from windtunnel.harness.orchestrate.teardown.clean import NAMESPACE_FOLDER

REPOSITORY = Path(__file__).resolve().parents[2]
SCENARIO = "matrix/clean"
MARK = "WINDTUNNEL_KILLED_BY"
ALONE_S = 10.0
"""Seconds within which left-overs of a killed harness should be removed without cleanup."""
RUN_S = 600.0
WORKED = (0, 2)
"""Exit codes of a run with a verdict: PASS, or INCONCLUSIVE on a busy machine."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one moment."""

    killed_after_s: float
    lived: bool
    """Whether the harness was still running when it was killed."""
    next_code: int
    alone_s: float | None
    """Seconds until nothing was left, without cleanup; None if it took more than 10 s."""
    left: list[str]
    """What was left after `windtunnel clean`."""

    @property
    def is_good(self) -> bool:
        return not self.left and self.next_code in WORKED

    def line(self) -> str:
        """Return the outcome as one line of text."""
        alone = "not" if self.alone_s is None else f"{self.alone_s:.1f} s later"
        what = "killed" if self.lived else "over"
        left = f", LEFT {self.left}" if self.left else ""
        return (
            f"{what} after {self.killed_after_s:.2f} s; next run: exit {self.next_code}; "
            f"gone by itself: {alone}{left}"
        )


def command(out: Path, fidelity: str) -> list[str]:
    return [
        *(sys.executable, "-m", "windtunnel.harness", "run", SCENARIO),
        *("--fidelity", fidelity, "--out", str(out)),
    ]


def start(out: Path, fidelity: str, mark: str) -> subprocess.Popen[bytes]:
    """Start a harness in a session of its own; all its processes carry the mark."""
    return subprocess.Popen(
        command(out, fidelity),
        cwd=REPOSITORY,
        env={**os.environ, MARK: mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def marked(mark: str) -> list[str]:
    """Return the living processes that carry a mark."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                name = (entry / "comm").read_text().strip()
                found.append(f"process {entry.name} {name}")
        except OSError:
            continue
    return found


def tokens_in(out: Path) -> set[str]:
    """Return the labs that have a record in the folder of runs."""
    return {path.stem for path in (out / ".lab").glob("*.json")}


def left_of(out: Path, tokens: set[str], mark: str) -> list[str]:
    """Return what is left of some labs and of the processes of one harness."""
    found = marked(mark)
    for token in sorted(tokens):
        places = [*NAMESPACE_FOLDER.glob(f"{state.NAME_PREFIX}{token}-*")]
        places += [state.MEMORY_ROOT / f"{state.MEMORY_PREFIX}{token}"]
        places += [out / ".lab" / f"{token}.json"]
        found += [str(path) for path in places if path.exists()]
    return found


def containers_left(fidelity: str) -> list[str]:
    if fidelity != "compose":
        return []
    from windtunnel.harness.orchestrate.labs import containers

    return [f"would still remove {line}" for line in containers.remove_leftovers()]


def one_moment(out: Path, fidelity: str, after_s: float) -> Outcome:
    """Kill a harness after a delay, and check what is left."""
    mark = secrets.token_hex(8)
    victim = start(out, fidelity, mark)
    time.sleep(after_s)
    lived = victim.poll() is None
    victim.send_signal(signal.SIGKILL)
    tokens = tokens_in(out)
    victim.wait()
    died_s = time.monotonic()
    follower = start(out, fidelity, secrets.token_hex(8))
    alone_s = None
    while alone_s is None and time.monotonic() - died_s < ALONE_S:
        if not left_of(out, tokens, mark):
            alone_s = time.monotonic() - died_s
        time.sleep(0.05)
    next_code = follower.wait(RUN_S)
    cleaned = subprocess.run(
        [sys.executable, "-m", "windtunnel.harness", "clean", "--out", str(out)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    left = left_of(out, tokens, mark) + containers_left(fidelity)
    if cleaned.returncode != 0:
        left.append(f"windtunnel clean: exit {cleaned.returncode}: {cleaned.stderr.strip()}")
    return Outcome(after_s, lived, next_code, alone_s, left)


def whole_run_s(out: Path, fidelity: str) -> float:
    """Return the duration of an undisturbed run; the first one may have to compile kernels."""
    for _ in range(2):
        started_s = time.monotonic()
        code = start(out, fidelity, "undisturbed").wait(RUN_S)
        if code not in WORKED:
            sys.exit(f"an undisturbed run ended with exit code {code}")
    return time.monotonic() - started_s


def main() -> int:
    """Kill as often as requested; see the module's docstring."""
    parser = argparse.ArgumentParser(prog="python -m tests.killed")
    parser.add_argument("--moments", type=int, default=50)
    parser.add_argument("--seed", type=int, default=None, help="of the moments; default: random")
    parser.add_argument("--fidelity", choices=("netns", "compose"), default="netns")
    options = parser.parse_args()
    seed = secrets.randbits(31) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    chance = random.Random(seed)
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="windtunnel-killed-") as folder:
        out = Path(folder)
        lasts_s = whole_run_s(out, options.fidelity)
        print(f"a whole run takes {lasts_s:.1f} s", flush=True)
        for index in range(options.moments):
            outcome = one_moment(out, options.fidelity, chance.uniform(0.0, lasts_s))
            outcomes.append(outcome)
            print(f"{index + 1:3} {outcome.line()}", flush=True)
    good = sum(each.is_good for each in outcomes)
    alone = sum(each.alone_s is not None for each in outcomes)
    killed = sum(each.lived for each in outcomes)
    figures = {"moments": len(outcomes), "killed": killed, "good": good, "gone_alone": alone}
    print(json.dumps(figures), flush=True)
    return 0 if good == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
