"""`windtunnel new`: writes a scenario for programs of the user's own."""

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure, one_line
from windtunnel.harness.cli.lab.impairment_options import NONE, impairment_options
from windtunnel.harness.cli.options import in_existing_folder, name_values
from windtunnel.harness.cli.render.table import echo

if TYPE_CHECKING:
    from windtunnel.harness.scenario.applications.new_scenario import NewProgram

_SUFFIX = ".yaml"
_IMPAIRMENTS = {"loss": "2%", "delay": "5ms"}
"""The impairments of a scenario for which none are chosen."""


@click.command(short_help="Write a scenario for programs of your own.")
@click.argument(
    "file", type=click.Path(dir_okay=False, path_type=Path), callback=in_existing_folder
)
@click.argument("programs", metavar="HOST=COMMAND...", nargs=-1, required=True)
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME=VALUE",
    callback=name_values,
    help="Environment variable of all programs; in VALUE, ${b} is the address of host b. Can be "
    "repeated.",
)
@click.option(
    "--ready",
    multiple=True,
    metavar="HOST=TEXT",
    callback=name_values,
    help="Text in the log of the host's programs that shows that they are ready. Can be repeated.",
)
@click.option(
    "--never",
    multiple=True,
    metavar="HOST=TEXT",
    callback=name_values,
    help="Text that makes the run fail if it is in the log of a program on the host.",
)
@click.option(
    "--for",
    "lasts_s",
    type=click.IntRange(1, 3600),
    metavar="SECONDS",
    help="Time after which the run ends all programs.  [default: 20]",
)
@click.option(
    "--until",
    multiple=True,
    metavar="HOST",
    help="Run until the programs on this host have ended by themselves. Can be repeated.",
)
@impairment_options
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def new(
    file: Path,
    programs: tuple[str, ...],
    variables: dict[str, str],
    ready: dict[str, str],
    never: dict[str, str],
    lasts_s: int | None,
    until: tuple[str, ...],
    force: bool,
    **impairments: Any,
) -> int:
    """Write the scenario FILE, which runs your programs on hosts with a link between them.

    Each HOST=COMMAND is a program and the host on which it runs, in the order in which the
    programs are started. The words of a command are separated as in a shell. Each host has a media
    driver, whose directory the program finds in AERON_DIR. Unless you choose impairments, the link
    loses 2 % of all packets and delays the others by 5 ms. This command starts nothing.

    \b
      windtunnel new prices.yaml b="python reader.py" a="python feed.py" \\
          --env 'CHANNEL=aeron:udp?endpoint=${b}:24325'
      windtunnel new calls.yaml a="java -jar service.jar" b="./client 100" --until b \\
          --ready a="service started" --loss 5%

    Exit codes: 0 written; 64 invalid command line.
    """
    from windtunnel.harness.artifact.regular_file import real_path, replace_file
    from windtunnel.harness.scenario.applications.new_scenario import NewScenario

    if file.suffix != _SUFFIX:
        raise click.UsageError(f"expected a file name that ends in {_SUFFIX}, found {str(file)!r}")
    if lasts_s is not None and until:
        raise click.UsageError(
            "--for and --until are mutually exclusive: both set the end of the run"
        )
    found = [_program(each) for each in programs]
    _check(found, [*ready, *never, *until], variables)
    if os.path.lexists(file) and not force:
        raise Failure(f"{file}: already exists: use --force to overwrite it", exit_code.USAGE)
    chosen = {name: value for name, value in impairments.items() if value is not None}
    scenario = NewScenario(
        name=file.stem,
        programs=found,
        impairments={
            name: value for name, value in (chosen or _IMPAIRMENTS).items() if value != NONE
        },
        variables=variables,
        ready=ready,
        never=never,
        lasts_s=lasts_s or NewScenario.lasts_s,
        until=until,
    )
    with one_line():
        text = scenario.text(file.parent)
        # A link in place of the file is replaced. The folder that the user names may be a link.
        replace_file(real_path(file.parent) / file.name, text)
    for word in scenario.absent_files(file.parent):
        echo(
            f"NOTE: {word} is not in the scenario's folder, and programs start in another one",
            err=True,
        )
    echo(f"scenario: {file}")
    echo(f"to read it: windtunnel explain {file}")
    echo(f"to run it: windtunnel run {file} --allow-commands")
    return exit_code.OK


def _check(programs: list["NewProgram"], named: list[str], variables: dict[str, str]) -> None:
    """Raise UsageError for one host alone, a host without a program, or a variable in which a shell
    has replaced `${b}`.
    """
    hosts = {each.host for each in programs}
    if len(hosts) < 2:
        raise click.UsageError(f"expected programs on two hosts or more, found only {hosts.pop()}")
    for host in named:
        if host not in hosts:
            raise click.UsageError(f"there is no program on host {host!r}")
    for name, value in variables.items():
        if "endpoint=:" in value:
            text = (
                f"--env {name}: expected a host, found {value!r}: put single quotes around ${{b}}"
            )
            raise click.UsageError(text)


def _program(text: str) -> "NewProgram":
    from windtunnel.harness.scenario.applications.new_scenario import NewProgram

    host, mark, command = text.partition("=")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise click.UsageError(f"{text!r}: {error}") from error
    if not mark or not host or not words:
        raise click.UsageError(f"expected HOST=COMMAND, such as b='python feed.py', found {text!r}")
    return NewProgram(host, words)
