"""A separate project folder, whose tests use the pytest plugin as a user's project does."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SETTINGS = "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"


@dataclass(frozen=True)
class Session:
    """The result of a pytest session: its exit code, its output, and its counts by outcome."""

    code: int
    output: str
    counts: dict[str, int]


def run_pytest(
    folder: Path,
    *arguments: str,
    python: str = sys.executable,
    prefix: tuple[str, ...] = (),
    variables: dict[str, str] | None = None,
    timeout_s: float = 280,
) -> Session:
    """Run pytest in a project folder, with the plugin as it is installed."""
    (folder / "pytest.ini").write_text(SETTINGS)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    argv = [*prefix, python, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly"]
    done = subprocess.run(
        [*argv, *arguments],
        cwd=folder,
        env=kept | (variables or {}),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    last = next((each for each in reversed(done.stdout.splitlines()) if " in " in each), "")
    found = re.findall(r"(\d+) (passed|failed|skipped|errors?)", last)
    counts = {what.rstrip("s"): int(count) for count, what in found}
    return Session(done.returncode, done.stdout + done.stderr, counts)
