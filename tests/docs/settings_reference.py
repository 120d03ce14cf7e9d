"""The reference page of the settings of media driver and archive, as their programs print them."""

import os
import re
import subprocess
import sys

PROGRAMS = {
    "Media driver": ("windtunnel-driver", ["windtunnel.driver", "--settings"]),
    "Archive": ("windtunnel archive run", ["windtunnel.driver.archive", "run", "--settings"]),
}
TIMEOUT_S = 60.0
_USER_DIRECTORY = re.compile(r"/dev/shm/aeron-\S+(?=;)")


def page() -> str:
    """Return the page: one table for each program."""
    lines = ["# Settings", ""]
    lines += [
        "Each setting is a property of Aeron with its default and its valid values. The media"
    ]
    lines += ["driver reads environment variables, the archive `-Dname=value`."]
    for title, (program, arguments) in PROGRAMS.items():
        lines += ["", f"## {title}", "", f"Printed by `{program} --settings`.", ""]
        lines += ["| setting | meaning | default; values |", "| --- | --- | --- |"]
        lines += [f"| `{name}` | {about} | {limits} |" for name, about, limits in _rows(arguments)]
    return "\n".join(lines) + "\n"


def _rows(arguments: list[str]) -> list[tuple[str, str, str]]:
    """Return the name, the meaning and the limits of each setting that a program prints."""
    names = ("HOME", "PATH", "PYTHONPATH", "NUMBA_DISABLE_JIT")
    environment = {name: os.environ[name] for name in names if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
        env=environment,
    )
    rows: list[list[str]] = []
    for line in done.stdout.splitlines():
        if not line.startswith(" "):
            rows.append([line])
        else:
            rows[-1].append(_USER_DIRECTORY.sub("/dev/shm/aeron-$USER", line.strip()))
    cells = [[each.replace("|", "\\|") for each in row] for row in rows]
    assert all(len(row) == 3 for row in cells), "expected a name, a meaning and limits of a setting"
    return [(row[0], row[1], row[2]) for row in cells]
