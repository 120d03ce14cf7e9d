"""The `windtunnel` command group, and the one place where an error becomes a line and an exit code.

A user's mistake and a machine's refusal are one line on stderr. Only a defect of Windtunnel itself
shows a traceback, and it exits 3: Python's own 1 would read as a FAIL of the subject.
"""

import os
import sys
import traceback
from collections.abc import Sequence

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.archive import archive
from windtunnel.harness.cli.bench.bench import bench
from windtunnel.harness.cli.clean import clean
from windtunnel.harness.cli.doctor import doctor
from windtunnel.harness.cli.explain import explain
from windtunnel.harness.cli.from_capture import from_capture
from windtunnel.harness.cli.inspect.analyze import analyze
from windtunnel.harness.cli.inspect.backlog import backlog
from windtunnel.harness.cli.inspect.driver_info import driver_info
from windtunnel.harness.cli.inspect.errors import errors
from windtunnel.harness.cli.inspect.logbuffer import logbuffer
from windtunnel.harness.cli.inspect.loss import loss
from windtunnel.harness.cli.inspect.stat import stat
from windtunnel.harness.cli.inspect.streams import streams
from windtunnel.harness.cli.list import list_scenarios
from windtunnel.harness.cli.render.table import echo
from windtunnel.harness.cli.runs.calibrate import calibrate
from windtunnel.harness.cli.runs.decisions import decisions
from windtunnel.harness.cli.runs.exam import exam
from windtunnel.harness.cli.runs.judge import judge
from windtunnel.harness.cli.runs.matrix import matrix
from windtunnel.harness.cli.runs.replay import replay
from windtunnel.harness.cli.runs.report import report
from windtunnel.harness.cli.runs.run import run
from windtunnel.harness.cli.runs.shrink import shrink
from windtunnel.harness.cli.runs.swarm import swarm

HELP = """Put Aeron streams into bad weather, and see what happens to them.

Hosts with a media driver each talk across a link; a middlebox on the link loses, delays, reorders
and duplicates exactly the frames that a scenario orders; the run is judged byte by byte.

\b
  windtunnel run                          the three main scenarios
  windtunnel run loss/reliable-2pct       one scenario, by name or by file
  windtunnel run loss/unreliable-2pct --seed 7 --payload big.tar
  windtunnel matrix --seeds 5             our driver and the real C driver, each against each
  windtunnel swarm --seeds 2000           trials on virtual time, each chosen by its seed
  windtunnel judge runs/<suite>/<run>     judge a stored run again, offline
  windtunnel decisions runs/<suite>/<run> | jq 'select(.action == "drop")'
  windtunnel replay runs/<suite>/<run>    the same decisions about the same frames, once more
  windtunnel shrink runs/<suite>/<run>    the smallest scenario that still fails as it did
  windtunnel from-capture bad-night.pcap  a scenario with the losses that a capture shows
  windtunnel analyze lan/*.pcap           what captures tell of loss and repair
  windtunnel run netem/loss-bursts --kernel uml    with a kernel that has netem
  windtunnel doctor                       what this machine has, what will be used instead

\b
Tools that look into any Aeron driver, real or ours, while it runs or afterwards:

\b
  windtunnel stat --dir /dev/shm/aeron-me       its counters, live; --json, or a table in a pipe
  windtunnel driver-info                        who it is, and whether it lives
"""

EPILOG = """\b
Exit codes: 0 PASS or UNSUPPORTED, 1 FAIL, 2 INCONCLUSIVE, 3 HARNESS (our side failed),
64 wrong command line or scenario, 130 interrupted. Of several runs the worst counts.
The tools that look into a driver: 0 shown, 1 nothing is there, 2 it cannot be read.

\b
Shell completion, scenario names included (bash; zsh and fish likewise):
  eval "$(_WINDTUNNEL_COMPLETE=bash_source windtunnel)"
"""


class InOrder(click.Group):
    """A group that lists its commands in the order of a newcomer's day, not of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("windtunnel")
    except PackageNotFoundError:
        return "not installed (running from a checkout)"


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"windtunnel {_version()}")
        ctx.exit()


@click.group(
    cls=InOrder,
    invoke_without_command=True,
    help=HELP,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and leave.",
)
@click.pass_context
def windtunnel(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


ABOUT_RUNS = (
    *(run, matrix, swarm, list_scenarios, explain, judge, report, decisions, replay),
    *(shrink, from_capture, analyze),
    *(doctor, clean),
)
ABOUT_DRIVERS = (stat, streams, backlog, loss, errors, logbuffer, driver_info, archive)
for command in (*ABOUT_RUNS, *ABOUT_DRIVERS, bench, exam, calibrate):
    windtunnel.add_command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; no exception escapes."""
    try:
        result = windtunnel.main(arguments, prog_name="windtunnel", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "windtunnel"
        _say(f"{error.format_message()} (see `{path} --help`)")
        return exit_code.USAGE
    except click.ClickException as error:
        _say(error.format_message())
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _say("interrupted")
        return exit_code.INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # The reader of our output went away (`| head`). click would exit 1, which reads as FAIL.
        # Python flushes once more at exit, hence the dummy.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_code.BROKEN_PIPE
    except OSError as error:
        from windtunnel.harness.artifact.regular_file import UnsafeFileError

        _say(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        is_unsafe = isinstance(error, UnsafeFileError)
        return exit_code.INCONCLUSIVE if is_unsafe else exit_code.HARNESS
    except Exception:
        echo(traceback.format_exc().rstrip(), err=True)
        _say("this is a defect of windtunnel itself, not of the driver under test")
        return exit_code.HARNESS
    return result if isinstance(result, int) else exit_code.OK


def _say(text: str) -> None:
    echo(f"windtunnel: {text}", err=True)
