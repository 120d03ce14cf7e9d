"""`windtunnel swarm`: where it writes the folder of a trial."""

import subprocess
import sys
from pathlib import Path

from windtunnel.harness.cli import exit_code


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "kept"
    done = subprocess.run(
        [sys.executable, "-m", "windtunnel.harness", "swarm", "--seeds", "1", "--keep", folder],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == exit_code.HARNESS
    # Before, stderr reports kernels that had to be compiled.
    assert done.stderr.splitlines()[-1] == (
        f"seed 0: its run folder {folder} is incomplete: {folder}: Not a directory"
    )
    assert "0 violations" in done.stdout
