"""Names of scenarios -> files.

A name such as `loss/reliable-2pct` is the path below `scenarios/` without `.yaml`; anything that is
a file is taken as it is. Nothing is parsed here.
"""

import difflib
from pathlib import Path

import click
from click.shell_completion import CompletionItem

MAIN = ("loss/reliable-2pct", "reorder/reliable-swap-and-hold", "loss/unreliable-2pct")
"""What `windtunnel run` runs when it is told nothing."""

FOLDER = Path(__file__).resolve().parents[2] / "scenarios"


def names(folder: Path = FOLDER) -> list[str]:
    """Names of all scenarios of the folder, sorted."""
    found = (path.relative_to(folder).with_suffix("") for path in folder.rglob("*.yaml"))
    return sorted(str(each) for each in found if each.parts[0] != "networks")


def find(name: str, folder: Path = FOLDER) -> Path:
    """The file that a name or a path stands for; a usage error with the nearest names if none."""
    given = Path(name)
    if given.is_file():
        return given
    stored = folder / f"{name.removesuffix('.yaml')}.yaml"
    if stored.is_file():
        return stored
    near = difflib.get_close_matches(name, names(folder), n=3, cutoff=0.4)
    hint = f" Did you mean {', '.join(near)}?" if near else " See `windtunnel list`."
    raise click.UsageError(f"no scenario and no file is called {name!r}.{hint}")


def find_all(chosen: tuple[str, ...], folder: Path = FOLDER) -> list[Path]:
    """Files of the chosen scenarios, or of the main ones when none is chosen."""
    return [find(name, folder) for name in chosen or MAIN]


def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What the shell may complete: scenario names first, then files."""
    matching = [CompletionItem(name) for name in names() if name.startswith(incomplete)]
    return matching or [CompletionItem(incomplete, type="file")]
