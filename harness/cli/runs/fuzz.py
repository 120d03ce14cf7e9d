"""`windtunnel fuzz`: attacks a live driver, a live archive, or the tools that read other people's
files.
"""

from pathlib import Path

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure

SECOND_NS = 1_000_000_000
COUNTS = {"driver": "datagrams", "archive": "requests", "tools": "files"}
"""Attacked program -> option with the length of an epoch."""


HELP = """Attack a live driver, a live archive, or the tools, with seeded, hostile input.

driver: mutated frames of all types go to its receivers and senders: unicast, multicast,
multi-destination, IPv4 and IPv6, also as UDP segmentation trains. Mutated commands are written
to its ring buffer. The log buffers of the attacked streams are overwritten, and some are
truncated. During the attack, every message of the other streams is checked. After each epoch (a
number of datagrams) these streams must deliver everything. The driver must not end, stall, grow
by more than 64 MiB, or report a defect.

archive: hostile sessions send mutated requests of all kinds over UDP and IPC, while a regular
client records, replays and lists. At random moments the archive is killed and restarted: every
acknowledged byte must be there. After some kills its files are damaged: then the archive must
refuse to start, name the damage, and `windtunnel archive recover` must rebuild the catalog.

tools: damaged scenarios, run folders, captures, driver and archive directories go to all
commands that read such files. A command must end with a documented exit code, without a
traceback, within limits of time, memory and output. It must follow no link and write nothing
outside of its folder. The attack continues after a violation, up to 20 different ones.

The first violation ends an attack on a driver or an archive, and the inputs before it are
written to a file, which --replay repeats. Equal seeds lead to equal inputs.

\b
  windtunnel fuzz --for 10m --seed 7
  windtunnel fuzz --for 10m --driver pyaeron    the same against Aeron's C driver
  windtunnel fuzz --against archive --for 10m
  windtunnel fuzz --against tools --for 10m
  windtunnel fuzz --budgets --driver all        the costs of an attack, side by side
  windtunnel fuzz --replay runs/fuzz/driver-ours-s7-e3.json

Needs no privileges. --budgets needs a quiet machine. Exit codes: 0 found no violation; 1 a
violation, or an exceeded budget of Windtunnel's driver; 2 the finding is not readable; 3 the
driver or the archive could not be started; 64 invalid command line.
"""


@click.command(
    help=HELP,
    short_help="Attack a driver, an archive or the tools, and detect violations.",
)
@click.option(
    "--against",
    type=click.Choice(list(COUNTS)),
    default="driver",
    show_default=True,
    help="What to attack.",
)
@click.option(
    "--for",
    "duration",
    default="60s",
    show_default=True,
    help="Do not start a new epoch after this time, for example 10m.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0, max=1 << 30),
    default=0,
    show_default=True,
    help="Seed from which all inputs are generated.",
)
@click.option(
    "--driver",
    type=click.Choice(["ours", "pyaeron", "all"]),
    help="The driver to attack. `all` can only be used with --budgets.  [default: ours]",
)
@click.option(
    "--mode",
    type=click.Choice(["SHARED", "DEDICATED"]),
    default="SHARED",
    show_default=True,
    help="Threading mode of the driver.",
)
@click.option(
    "--datagrams",
    type=click.IntRange(min=1_000, max=1_000_000),
    help="Number of datagrams in an epoch.  [default: 100000]",
)
@click.option(
    "--requests",
    type=click.IntRange(min=100, max=1_000_000),
    help="With --against archive: number of requests in an epoch.  [default: 2000]",
)
@click.option(
    "--files",
    type=click.IntRange(min=10, max=1_000_000),
    help="With --against tools: number of trials in an epoch.  [default: 20000]",
)
@click.option(
    "--budgets",
    is_flag=True,
    help="Instead of checking streams, measure latency, memory, output and join time under attack.",
)
@click.option(
    "--replay",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Repeat the attack that is stored in this finding.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs/fuzz"),
    show_default=True,
    help="Folder for findings.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead of text.")
def fuzz(
    against: str,
    duration: str,
    seed: int,
    driver: str | None,
    mode: str,
    datagrams: int | None,
    requests: int | None,
    files: int | None,
    budgets: bool,
    replay: Path | None,
    out: Path,
    as_json: bool,
) -> int:
    from windtunnel.harness.artifact.regular_file import real_path
    from windtunnel.harness.cli.failure import one_line
    from windtunnel.harness.orchestrate.swarm import run_program
    from windtunnel.harness.scenario.schema.units import parse_duration

    if driver == "all" and not budgets:
        raise Failure(
            "--driver all can only be used with --budgets; without --budgets, name one driver",
            exit_code.USAGE,
        )
    counts = {"datagrams": datagrams, "requests": requests, "files": files}
    _require_options_of(against, counts, driver is not None or budgets)
    try:
        duration_s = parse_duration(duration) / SECOND_NS
    except ValueError as error:
        raise Failure(f"--for: {error}", exit_code.USAGE) from error
    arguments = ["--seed", str(seed), "--driver", driver or "ours", "--mode", mode]
    arguments += ["--for-s", str(duration_s), "--against", against]
    for name, count in counts.items():
        arguments += [f"--{name}", str(count)] if count is not None else []
    arguments += ["--out", str(real_path(out))]
    command = "budgets" if budgets else "attack"
    if replay is not None:
        command = "replay"
        arguments += ["--finding", str(real_path(replay))]
    if as_json:
        arguments.append("--json")
    with one_line():
        return run_program("windtunnel.harness.fuzz", [command, *arguments], Path("runs"))


def _require_options_of(
    against: str, counts: dict[str, int | None], has_driver_options: bool
) -> None:
    """Raise Failure if an option was given that does not belong to the attacked program."""
    for name, count in counts.items():
        if count is not None and name != COUNTS[against]:
            raise Failure(
                f"--{name} cannot be used with --against {against}, which has --{COUNTS[against]}",
                exit_code.USAGE,
            )
    if against != "driver" and has_driver_options:
        raise Failure(
            f"--driver and --budgets cannot be used with --against {against}", exit_code.USAGE
        )
