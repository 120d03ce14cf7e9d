"""Finds the scenario files in a folder of the user.

    mine/a.yaml           a scenario
    mine/deep/b.yaml      a scenario
    mine/.cache/          ignored, like all hidden files and folders, and links to folders
    mine/runs/2026.../    ignored: a folder of runs, with copies of their scenarios
    mine/compose.yaml     an error: a misspelt scenario must not be left out unnoticed

The files are not parsed here, but a file without the keys that each scenario has is rejected.
"""

import os
import re
from pathlib import Path

import click

SUFFIX = ".yaml"
FILES_MAX = 1000
"""Maximum number of scenarios in a folder."""
ENTRIES_MAX = 100_000
"""Maximum number of files and folders that are looked at."""
_RUN_DOCUMENTS = {"suite.json", "matrix.json", "shrink.json", "run.json", "case.json"}
"""Files that identify the folder of a run, or of several. Source: suite_dir.py, run_dir.py."""
_SCENARIO_KEY = re.compile(rb"""(^|[{,])\s*["']?(schema|extends)["']?\s*:""", re.MULTILINE)


def scenario_files(folder: Path) -> list[Path]:
    """Return the scenario files in a folder and its subfolders, sorted. Returns an empty list if
    there are none.

    Raises UsageError if a file is not a scenario, a subfolder cannot be read, or there are too many
    files.
    """
    found: list[Path] = []
    entries = 0
    for above, folders, files in os.walk(folder, onerror=_refuse):
        entries += len(folders) + len(files)
        if entries > ENTRIES_MAX:
            raise click.UsageError(f"{folder} has more than {ENTRIES_MAX:,} files and folders")
        if Path(above) != folder and _RUN_DOCUMENTS & set(files):
            folders.clear()
            continue
        folders[:] = [each for each in folders if not each.startswith(".")]
        names = (each for each in files if each.endswith(SUFFIX) and not each.startswith("."))
        found += [file for name in names if (file := Path(above, name)).is_file()]
        if len(found) > FILES_MAX:
            raise click.UsageError(f"{folder} has more than {FILES_MAX:,} scenarios")
    for file in sorted(found):
        _require_scenario(file, folder)
    return sorted(found)


def _refuse(error: OSError) -> None:
    raise click.UsageError(f"{error.filename}: {error.strerror}") from error


def _require_scenario(file: Path, folder: Path) -> None:
    """Raise UsageError if a file has neither of the keys that each scenario has."""
    from windtunnel.harness.scenario.yaml_document import FILE_BYTES_MAX

    try:
        with file.open("rb") as opened:
            text = opened.read(FILE_BYTES_MAX)
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror}") from error
    if not _SCENARIO_KEY.search(text):
        raise click.UsageError(
            f"{file} is not a scenario: it has neither the key `schema` nor `extends`. Each file "
            f"*{SUFFIX} in a folder must be a scenario: name the scenarios of {folder} instead, or "
            "move the file"
        )
