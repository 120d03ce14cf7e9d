"""`windtunnel lab`: brings up a lab that stays, changes it, and takes it down.

up --> start, impair, partition, heal, pause, kill, status ... --> down: verdict and report
"""

import json
import os
import shlex
from pathlib import Path
from typing import Any

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure
from windtunnel.harness.cli.lab.impairment_options import NONE, impairment_options
from windtunnel.harness.cli.lab.lab_options import json_option, name_option, scenario_name
from windtunnel.harness.cli.lab.lab_up import up
from windtunnel.harness.cli.options import name_values
from windtunnel.harness.cli.render.table import echo
from windtunnel.harness.cli.render.verdict_text import run_line

to_option = click.option("--to", metavar="HOST", help="Only in the direction to this host.")


class OrderedGroup(click.Group):
    """A click command group that lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=OrderedGroup, short_help="Work in a lab that stays up, and change its links.")
def lab() -> None:
    """Work in a lab that stays up: hosts with media drivers, in network namespaces or containers,
    and links whose impairments can be changed at any time.

    \b
      windtunnel lab up --loss 2% --delay 20ms
      windtunnel lab start b --ready "reader ready" -- python reader.py
      windtunnel lab start a -- python feed.py
      windtunnel lab impair a-b --loss 10%
      windtunnel lab partition a-b
      windtunnel lab heal a-b
      windtunnel lab status
      windtunnel lab down

    `down` judges the run like any other, and writes its report. Programs find the directory of
    their host's driver in AERON_DIR. In their arguments and variables, ${b} is the address of host
    b; quote it for the shell.
    """


lab.add_command(up)


def ask(lab_name: str, do: str, /, **fields: Any) -> dict[str, Any]:
    """Make a request to a lab. Raises Failure if there is none, or if it refuses."""
    from windtunnel.harness.lab.control.control_socket import NoLab
    from windtunnel.harness.lab.control.control_socket import ask as ask_keeper
    from windtunnel.harness.lab.errors import LabError

    try:
        return ask_keeper(lab_name, {"do": do, **fields})
    except NoLab as error:
        raise Failure(str(error), exit_code.NOTHING) from error
    except LabError as error:
        raise Failure(str(error), exit_code.HARNESS) from error


def _ends(name: str, link: str) -> list[str]:
    """Return the two hosts of a link such as a-b."""
    from windtunnel.harness.lab.errors import LabError
    from windtunnel.harness.lab.options import link_ends

    try:
        return link_ends(list(ask(name, "status")["addresses"]), link)
    except LabError as error:
        raise click.UsageError(str(error)) from error


@lab.command(
    short_help="Start a program on a host.", context_settings={"ignore_unknown_options": True}
)
@click.argument("host")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--ready", metavar="TEXT", help="Wait for a line of the program's log that contains this text."
)
@click.option(
    "--within", type=float, default=20.0, help="Seconds to wait for --ready.  [default: 20]"
)
@click.option(
    "--env", multiple=True, callback=name_values, metavar="NAME=VALUE", help="Set a variable."
)
@click.option(
    "--id", "id_", metavar="ID", help="Name of the program in the lab.  [default: that of its file]"
)
@name_option
def start(
    host: str,
    command: tuple[str, ...],
    ready: str | None,
    within: float,
    env: dict[str, str],
    id_: str | None,
    name: str,
) -> int:
    """Start a program on a host, in the current folder. Write `--` before a command that has
    options.
    """
    table: dict[str, Any] = {"on": host, "command": list(command), "env": env}
    if ready is not None:
        table["ready"] = {"log": ready, "within": f"{round(within * 1000)}ms"}
    search = {"PATH": os.environ["PATH"]} if "PATH" in os.environ else {}
    found = ask(name, "start", name=id_, folder=str(Path.cwd()), variables=search, **table)
    echo(f"{found['application']}: {shlex.join(command)}")
    echo(f"log: {found['log']}")
    return exit_code.OK


@lab.command(short_help="Change impairments of a link now.")
@click.argument("link")
@to_option
@impairment_options
@name_option
def impair(link: str, to: str | None, name: str, **impairments: Any) -> int:
    """Change impairments of a link such as a-b now. The others remain; `none` removes one."""
    changes = {key: None if value == NONE else value for key, value in impairments.items() if value}
    if not changes:
        raise click.UsageError("expected at least one impairment, such as --loss 10%")
    ends = _ends(name, link)
    ask(name, "link", action="impair", between=ends, to=to, impairments=changes)
    return exit_code.OK


def _link_command(action: str, short: str, text: str) -> None:
    @click.command(name=action, short_help=short, help=text)
    @click.argument("link")
    @to_option
    @name_option
    def command(link: str, to: str | None, name: str) -> int:
        ask(name, "link", action=action, between=_ends(name, link), to=to)
        return exit_code.OK

    lab.add_command(command)


_link_command("partition", "Lose every packet of a link.", "Lose every packet of a link, until "
              "`reconnect` or `heal`. Packets that are on their way arrive.")  # fmt: skip
_link_command("reconnect", "End a partition.", "End a partition. The link has its previous "
              "impairments again.")  # fmt: skip
_link_command("heal", "Undo all changes of a link.", "Return a link to the impairments with which "
              "the lab was brought up.")  # fmt: skip


def _event_command(action: str, short: str, text: str) -> None:
    @click.command(name=action, short_help=short, help=text)
    @click.argument("whom")
    @name_option
    def command(whom: str, name: str) -> int:
        is_host = whom in ask(name, "status")["addresses"]
        target = {"host": whom} if is_host else {"application": whom}
        ask(name, "event", action=action, **target)
        return exit_code.OK

    lab.add_command(command)


_WHOM = "WHOM is the name of a program, or that of a host for its media driver."
_event_command("pause", "Pause a program or a driver.", "Pause all processes of a program or a "
               f"driver. {_WHOM}")  # fmt: skip
_event_command("resume", "Resume a paused program or driver.", "Resume a paused program or driver. "
               f"{_WHOM}")  # fmt: skip
_event_command("kill", "Kill a program or a driver.", "Kill a program or a driver with SIGKILL. "
               f"{_WHOM}")  # fmt: skip
_event_command("restart", "Restart a killed program or driver.", "Restart a killed program or "
               f"driver. {_WHOM}")  # fmt: skip


@lab.command(short_help="End a program.")
@click.argument("program")
@name_option
def stop(program: str, name: str) -> int:
    """Send SIGTERM to a program, and wait until it has ended. Prints its exit code."""
    echo(f"exit code {ask(name, 'stop', application=program)['code']}")
    return exit_code.OK


@lab.command(short_help="Show links and programs.")
@name_option
@json_option
def status(name: str, as_json: bool) -> int:
    """Show the links with their impairments, and the programs with their logs."""
    found = ask(name, "status")
    if as_json:
        click.echo(json.dumps(found))
        return exit_code.OK
    for line in status_lines(found):
        echo(line)
    return exit_code.OK


def status_lines(found: dict[str, Any]) -> list[str]:
    """Return the lines that show the state of a lab."""
    lines = [f"run folder: {found['run_dir']}"]
    for each in found["links"]:
        impairments = ", ".join(f"{key} {value}" for key, value in each["impairments"].items())
        state = "partitioned" if each["partitioned"] else impairments or "no impairments"
        lines.append(f"link {each['from']}->{each['to']}: {state}")
    for each in found["applications"]:
        code = each["exit_code"]
        state = "running" if code is None else f"ended with exit code {code}"
        state = state if each["ready"] or code is not None else "not ready"
        lines.append(f"{each['host']}/{each['id']}: {state}, log {each['log']}")
    return lines


@lab.command(short_help="Take the lab down, and judge it.")
@name_option
@json_option
def down(name: str, as_json: bool) -> int:
    """End all programs, take the lab down, judge the run and write its report. The exit code is
    that of the verdict.
    """
    from windtunnel.harness.verdict.core.outcome import Outcome
    from windtunnel.harness.verdict.core.outcome import exit_code as code_of

    found = ask(name, "down")
    if as_json:
        click.echo(json.dumps(found))
    else:
        seed = found.get("seed")
        click.echo(run_line(found["outcome"], scenario_name(name), seed, found["reason"], None))
        for key, what in (("run_dir", "run folder"), ("report", "report")):
            if found.get(key):
                echo(f"{what}: {found[key]}")
    known = found["outcome"] in Outcome.__members__
    return code_of(Outcome[found["outcome"]]) if known else exit_code.HARNESS
