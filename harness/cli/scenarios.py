"""Lookup of scenario files by name.

A name such as `loss/reliable-2pct` is the path below `scenarios/` without `.yaml`, and `loss` is
the folder of all scenarios whose names begin with `loss/`. The path of an existing file, or of a
folder with scenarios, takes precedence. This module does not parse files.
"""

import difflib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from windtunnel.harness.cli.scenario_folder import scenario_files
from windtunnel.harness.installation import SCENARIOS

MAIN = ("loss/reliable-2pct", "reorder/reliable-swap-and-hold", "loss/unreliable-2pct")
"""The scenarios that `windtunnel run` executes by default."""
_BESIDE_MAX = 1000
"""Maximum number of files that are compared with the name of one that does not exist."""


def names(folder: Path = SCENARIOS) -> list[str]:
    """Return the sorted names of all scenarios in the scenario folder."""
    found = (path.relative_to(folder).with_suffix("") for path in folder.rglob("*.yaml"))
    return sorted(str(each) for each in found if each.parts[0] != "networks")


def find(name: str, folder: Path = SCENARIOS) -> Path:
    """Return the scenario file with this name or path. Raises a UsageError that lists similar
    names, or says that the name is that of a folder.
    """
    found = _file(name, folder)
    if found is not None:
        return found
    if inside := [*islice(_inside(name, folder), 1)]:
        raise click.UsageError(
            f"{name} is a folder of scenarios: expected one scenario, such as {inside[0]}"
        )
    if Path(name).is_dir():
        raise click.UsageError(f"there is no scenario in the folder {name}: expected *.yaml files")
    known = [*_files_beside(name), *names(folder)]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    hint = f" Did you mean {', '.join(near)}?" if near else " See `windtunnel list`."
    raise click.UsageError(f"there is no scenario or file named {name!r}.{hint}")


def _files_beside(name: str) -> list[str]:
    """Return the scenario files in the folder of a file that does not exist."""
    return [str(each) for each in islice(Path(name).parent.glob("*.yaml"), _BESIDE_MAX)]


def _file(name: str, folder: Path) -> Path | None:
    given = Path(name)
    stored = folder / f"{name.removesuffix('.yaml')}.yaml"
    return next((each for each in (given, stored) if each.is_file()), None)


def find_all(chosen: tuple[str, ...], folder: Path = SCENARIOS) -> list[Path]:
    """Return the scenario files with the given names or in the given folders, each once. The
    default is the main scenarios.
    """
    return list(dict.fromkeys(file for name in chosen or MAIN for file in _files(name, folder)))


def _files(name: str, folder: Path) -> list[Path]:
    """Return the file of a scenario, or all scenario files in a folder."""
    if _file(name, folder) is None and (inside := [*_inside(name, folder)]):
        return [find(each, folder) for each in inside]
    return [find(name, folder)]


def _inside(name: str, folder: Path) -> Iterator[str]:
    """Yield the sorted scenarios in a folder: the paths of those in a folder of the user or, if it
    has none, the names of those in a folder of `folder`.
    """
    own = scenario_files(Path(name)) if Path(name).is_dir() else []
    if own:
        yield from map(str, own)
    else:
        yield from (each for each in names(folder) if each.startswith(f"{name.rstrip('/')}/"))


def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return shell completions: scenario names, or files if no scenario name matches."""
    matching = [CompletionItem(name) for name in names() if name.startswith(incomplete)]
    return matching or [CompletionItem(incomplete, type="file")]
