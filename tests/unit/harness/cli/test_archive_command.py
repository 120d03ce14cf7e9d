"""`windtunnel archive` is the archive's own program: its arguments, output and exit codes."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden import archive_files


def _run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    program = "import sys; from windtunnel.harness.__main__ import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", program, "archive", *arguments],
        cwd=folder,
        capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        (["count", "--dir", "."], 0, "3\n", ""),
        (["count"], 1, "", "windtunnel archive: aeron-archive: no such directory\n"),
        (["--nonsense"], 64, "", "windtunnel archive: No such option"),
    ],
)
def test_it_executes_the_archives_own_program(
    tmp_path: Path, words: list[str], code: int, out: str, err: str
) -> None:
    archive_files.unpack(tmp_path)
    # A module of that name in the user's current folder is not executed.
    (tmp_path / "driver.py").write_text("raise SystemExit(99)")
    found = _run(tmp_path, *words)
    assert (found.returncode, found.stdout) == (code, out)
    assert found.stderr.startswith(err)


def test_help_has_examples_and_names_exit_codes(tmp_path: Path) -> None:
    output = _run(tmp_path, "--help").stdout
    assert output.count("  windtunnel archive") >= 2
    assert "Exit codes: 0 " in output
    assert all(len(line) <= 100 for line in output.splitlines())
