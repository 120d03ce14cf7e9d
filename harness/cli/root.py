"""The `windtunnel` command group. It reports every error as a message and an exit code.

A usage error or a missing privilege is reported as one line on stderr. Only a defect of Windtunnel
itself prints a traceback; its exit code is 3, because Python's default of 1 would mean FAIL.
"""

import errno
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from windtunnel.harness.cli import exit_code, standard_streams
from windtunnel.harness.cli.archive import archive
from windtunnel.harness.cli.bench.bench import bench
from windtunnel.harness.cli.clean import clean
from windtunnel.harness.cli.doctor import doctor
from windtunnel.harness.cli.explain import explain, schema
from windtunnel.harness.cli.inspect.analyze import analyze
from windtunnel.harness.cli.inspect.backlog import backlog
from windtunnel.harness.cli.inspect.driver_info import driver_info
from windtunnel.harness.cli.inspect.errors import errors
from windtunnel.harness.cli.inspect.logbuffer import logbuffer
from windtunnel.harness.cli.inspect.loss import loss
from windtunnel.harness.cli.inspect.stat import stat
from windtunnel.harness.cli.inspect.streams import streams
from windtunnel.harness.cli.lab.lab import OrderedGroup, lab
from windtunnel.harness.cli.list import list_scenarios
from windtunnel.harness.cli.new import new
from windtunnel.harness.cli.peer import peer
from windtunnel.harness.cli.render.table import echo
from windtunnel.harness.cli.replay.decisions import decisions
from windtunnel.harness.cli.replay.from_capture import from_capture
from windtunnel.harness.cli.replay.replay import replay
from windtunnel.harness.cli.replay.shrink import shrink
from windtunnel.harness.cli.runs.calibrate import calibrate
from windtunnel.harness.cli.runs.compare import compare
from windtunnel.harness.cli.runs.envelope import envelope
from windtunnel.harness.cli.runs.exam import exam
from windtunnel.harness.cli.runs.fuzz import fuzz
from windtunnel.harness.cli.runs.judge import judge
from windtunnel.harness.cli.runs.matrix import matrix
from windtunnel.harness.cli.runs.report import report
from windtunnel.harness.cli.runs.run import run
from windtunnel.harness.cli.runs.swarm import swarm
from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled

HELP = """Test Aeron streams under packet loss, reordering and delay.

Hosts, each with a media driver, exchange streams over a link. A middlebox on the link drops,
delays, reorders and duplicates exactly the frames that a scenario selects. Each run is then checked
byte by byte.

\b
  windtunnel run                          run the three main scenarios
  windtunnel run loss/reliable-2pct       run one scenario, given by name or by file
  windtunnel run loss/unreliable-2pct --seed 7 --payload big.tar
  windtunnel run netem/loss-bursts --kernel uml    run on a kernel that has netem
  windtunnel new my.yaml b="python reader.py" a="python feed.py"    for programs of your own
  windtunnel matrix --seeds 5             run Windtunnel's and Aeron's C driver in all combinations
  windtunnel swarm --seeds 2000           run random simulated trials, one for each seed
  windtunnel judge runs/<suite>/<run>     judge a stored run again, offline
  windtunnel compare runs/<suite>         compare the figures of several runs
  windtunnel decisions runs/<suite>/<run> | jq 'select(.action == "drop")'
  windtunnel replay runs/<suite>/<run>    repeat a run with the same decisions on the same frames
  windtunnel shrink runs/<suite>/<run>    find the smallest scenario that fails in the same way
  windtunnel from-capture bad-night.pcap  make a scenario from the losses in a capture
  windtunnel analyze lan/*.pcap           analyse loss and recovery in captures
  windtunnel lab up --loss 2%             bring up a lab that stays, for your own programs
  windtunnel peer check example/aeronmd:1.49     test an image whose driver is to be a peer
  windtunnel doctor                       check prerequisites and show fallbacks

Tools that inspect a driver, Aeron's or Windtunnel's, while it runs or afterwards:

\b
  windtunnel stat --dir /dev/shm/aeron-me       show its counters live; --json, or a table in a pipe
  windtunnel driver-info                        show its process id, version and liveness
"""

EPILOG = """\b
Exit codes: 0 PASS or UNSUPPORTED, 1 FAIL, 2 INCONCLUSIVE, 3 HARNESS (the harness failed),
64 invalid command line or scenario, 130 interrupted. The worst of several runs determines it.
The tools that inspect a driver: 0 shown, 1 not found, 2 not readable.

\b
Shell completion, which includes scenario names (bash; similar for zsh and fish):
  eval "$(_WINDTUNNEL_COMPLETE=bash_source windtunnel)"
"""


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("windtunnel")
    except PackageNotFoundError:
        return "not installed (running from a checkout)"


def _print_version(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
    if is_given:
        click.echo(f"windtunnel {_version()}")
        ctx.exit()


@click.group(
    cls=OrderedGroup,
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
    help="Print the version and exit.",
)
@click.pass_context
def windtunnel(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


RUN_COMMANDS = (
    *(run, new, matrix, swarm, list_scenarios, explain, schema, judge, report, compare),
    *(decisions, replay, shrink, from_capture, analyze),
    *(lab, peer, doctor, clean),
)
DRIVER_COMMANDS = (stat, streams, backlog, loss, errors, logbuffer, driver_info, archive)
for command in (*RUN_COMMANDS, *DRIVER_COMMANDS, bench, exam, envelope, calibrate, fuzz):
    windtunnel.add_command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. Never raises an exception."""
    standard_streams.prepare()
    try:
        # Python raises KeyboardInterrupt for SIGINT, and nothing for these.
        with Cancellation((signal.SIGTERM, signal.SIGHUP)):
            result = windtunnel.main(arguments, prog_name="windtunnel", standalone_mode=False)
            sys.stdout.flush()
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "windtunnel"
        _print_error(f"{error.format_message()} (see `{path} --help`)")
        return exit_code.USAGE
    except click.ClickException as error:
        _print_error(error.format_message() + _limit_advice(error))
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _print_error("interrupted")
        return exit_code.INTERRUPTED
    except Cancelled as cancelled:
        _print_error(str(cancelled))
        return cancelled.exit_code
    except (BrokenPipeError, SystemExit):
        # The program that reads the output closed the pipe (`| head`). click would exit with 1,
        # which means FAIL.
        return exit_code.BROKEN_PIPE
    except OSError as error:
        from windtunnel.driver.kernels.cache_error import advice
        from windtunnel.harness.artifact.regular_file import UnsafeFileError

        _print_error(_os_error_text(error) + advice(error))
        is_unsafe = isinstance(error, UnsafeFileError)
        return exit_code.INCONCLUSIVE if is_unsafe else exit_code.HARNESS
    except MemoryError as error:
        _print_error(f"not enough memory (see `ulimit -v`){f': {error}' if str(error) else ''}")
        return exit_code.HARNESS
    except Exception:
        echo(traceback.format_exc().rstrip(), err=True)
        _print_error("this is a defect of windtunnel itself, not of the driver under test")
        return exit_code.HARNESS
    return result if isinstance(result, int) else exit_code.OK


def _limit_advice(error: BaseException | None) -> str:
    """Return what to do if the limit for the size of files caused an error, or an empty string."""
    while error is not None and getattr(error, "errno", None) != errno.EFBIG:
        error = error.__cause__
    if error is None:
        return ""
    from windtunnel.driver.kernels.cache_error import advice

    return advice(error)


def _os_error_text(error: OSError) -> str:
    if error.filename:
        return f"{error.filename}: {error.strerror}"
    try:
        Path.cwd()
    except FileNotFoundError:
        return "the current directory does not exist any more: change to another one"
    return str(error)


def _print_error(text: str) -> None:
    echo(f"windtunnel: {text}", err=True)
