"""Fixtures for the command-line tests: a function to run a command, and an archive."""

import pytest

from tests.golden import archive_files
from tests.unit.driver.archive.tool.outcome import Outcome
from windtunnel.driver.archive.tool.program import main


@pytest.fixture
def tool(capsys, tmp_path):
    """Run a command on the archive in `tmp_path`."""

    def run(*arguments):
        code = main([*map(str, arguments), "--dir", str(tmp_path)])
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture
def golden(tmp_path):
    """The golden archive's directory."""
    return archive_files.unpack(tmp_path)
