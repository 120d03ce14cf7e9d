"""`windtunnel driver-info`: shows a driver's process and state, like Aeron's DriverTool."""

import json
import time
from pathlib import Path

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure
from windtunnel.harness.cli.inspect.look import (
    aeron_dir_option,
    directory_or_default,
    driver_document,
    echo_line,
    json_option,
    reading,
)
from windtunnel.harness.cli.render.table import printable
from windtunnel.harness.cli.render.time_text import time_text

EPILOG = """\b
Exit codes: 0 the driver is alive; 1 it is not alive or does not exist; 2 its cnc.dat cannot be
read; 64 invalid command line.
"""


@click.command(
    "driver-info",
    short_help="Show a driver's process, version and state; request termination.",
    epilog=EPILOG,
)
@aeron_dir_option
@json_option
@click.option("--pid", "pid_only", is_flag=True, help="Print only the process id.")
@click.option("--version", "version_only", is_flag=True, help="Print only the driver's version.")
@click.option(
    "--terminate",
    is_flag=True,
    help="Request termination. The driver exits if its termination validator accepts the token.",
)
@click.option("--token", default="", help="Token for --terminate, sent as UTF-8.")
def driver_info(
    directory: Path | None,
    as_json: bool,
    pid_only: bool,
    version_only: bool,
    terminate: bool,
    token: str,
) -> int:
    """Show the driver's process id, version, start time and heartbeat age.

    A driver whose heartbeat is older than 10 s is considered dead, and --terminate fails. Drivers
    do not respond to the request. Run driver-info again to see whether the driver has closed.

    \b
      windtunnel driver-info
      kill -TERM $(windtunnel driver-info --pid)
      windtunnel driver-info --terminate --token open-sesame
    """
    if sum((pid_only, version_only, terminate)) > 1:
        raise click.UsageError("--pid, --version and --terminate are mutually exclusive")
    if token and not terminate:
        raise click.UsageError("--token needs --terminate")
    from windtunnel.harness.inspect.aeron_dir import read_driver
    from windtunnel.harness.inspect.driver_state import driver_state

    where = directory_or_default(directory)
    with reading():
        state = driver_state(read_driver(where), time.time_ns() // 1_000_000)
    if terminate:
        return _terminate(where, token, state.state, state.is_alive)
    if as_json:
        click.echo(
            json.dumps({"schema": "windtunnel-driver-info/1", **driver_document(where, state)})
        )
    elif pid_only:
        click.echo(state.pid)
    elif version_only:
        echo_line(printable(state.software_version))
    else:
        age = f"{state.heartbeat_age_ms} ms ago" if state.heartbeat_ms > 0 else "none"
        for name, value in (
            ("directory", str(where)),
            ("state", state.state),
            ("pid", str(state.pid)),
            ("software", state.software or "unknown"),
            ("cnc version", state.cnc_version),
            ("started", time_text(state.start_ms)),
            ("heartbeat", age),
            ("client timeout", f"{state.client_liveness_timeout_ns / 1e6:g} ms"),
            ("counters", str(state.counter_count)),
            ("distinct errors", str(state.distinct_error_count)),
        ):
            echo_line(f"{name:<15}  {printable(value)}")
    return exit_code.OK if state.is_alive else exit_code.NOTHING


def _terminate(directory: Path, token: str, state: str, is_alive: bool) -> int:
    from windtunnel.harness.inspect.termination import RequestError, request_termination

    if not is_alive:
        raise Failure(f"the driver in {directory} is not alive: {state}", exit_code.NOTHING)
    try:
        with reading():
            request_termination(directory, token.encode("utf-8", "surrogateescape"))
    except RequestError as error:
        raise Failure(f"{directory}: {error}", exit_code.INCONCLUSIVE) from error
    click.echo(f"requested termination of the driver in {directory}")
    return exit_code.OK
