"""Finds the run folders for a command's arguments, which are run folders or suite folders."""

import os
from collections.abc import Sequence
from pathlib import Path

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure

run_dirs_argument = click.argument(
    "run_dirs",
    nargs=-1,
    required=True,
    metavar="RUN_DIR...",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
"""The argument of commands that take one or more run folders or suite folders."""


def run_folders(folders: Sequence[Path]) -> list[Path]:
    """Return the given run folders, with each suite folder replaced by the folders of its runs.

    Raises Failure if a folder is neither a suite nor a run: a verdict.json written into it would
    make it look like a run.
    """
    from windtunnel.harness.artifact.regular_file import untrusted_folder
    from windtunnel.harness.artifact.run_dir import RunDir
    from windtunnel.harness.artifact.suite_dir import SuiteDir

    runs = []
    for folder in map(untrusted_folder, folders):
        inside = [run.path for run in SuiteDir(folder).runs()]
        # A run that ended early may lack one of these files.
        evidence = RunDir(folder).manifest, RunDir(folder).case
        if not inside and not any(map(os.path.lexists, evidence)):
            names = " or ".join(each.name for each in evidence)
            text = (
                f"expected a run folder, which contains {names}, or a suite folder, found neither"
            )
            raise Failure(f"{folder}: {text}", exit_code.INCONCLUSIVE)
        runs += inside or [folder]
    return runs
