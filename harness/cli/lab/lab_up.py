"""`windtunnel lab up`: brings up a lab that stays."""

import json
import sys
from pathlib import Path
from typing import Any, cast

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure
from windtunnel.harness.cli.lab.driver_options import driver_options
from windtunnel.harness.cli.lab.impairment_options import impairment_options
from windtunnel.harness.cli.lab.lab_options import json_option, name_option, scenario_name
from windtunnel.harness.cli.options import SEED, name_values, out_option
from windtunnel.harness.cli.render.table import echo


@click.command(short_help="Bring up a lab.")
@click.option("--hosts", default="a,b", help="Names of the hosts.  [default: a,b]")
@click.option(
    "--link",
    "links",
    multiple=True,
    metavar="A-B",
    help="A link between two hosts, with these impairments. Can be repeated.  [default: the hosts, "
    "if there are two]",
)
@click.option(
    "--observe",
    multiple=True,
    metavar="STREAM:FROM:TO:CHANNEL|all",
    help="A stream of your programs that the verdict judges. Can be repeated. Or `all`.",
)
@out_option("Parent folder of the suite folder.")
@click.option("--seed", type=SEED, default=0, help="Seed of losses.  [default: 0]")
@driver_options
@click.option(
    "--timeouts",
    multiple=True,
    callback=name_values,
    metavar="NAME=TIME",
    help="A timeout of drivers and clients: image_liveness, client_liveness or driver, such as "
    "client_liveness=5s. Can be repeated.",
)
@click.option(
    "--fidelity",
    type=click.Choice(["netns", "compose"]),
    default="netns",
    help="Hosts as network namespaces or as containers.  [default: netns]",
)
@impairment_options
@name_option
@json_option
def up(
    hosts: str,
    links: tuple[str, ...],
    observe: tuple[str, ...],
    out: Path,
    seed: int,
    driver: str | dict[str, str],
    drivers: dict[str, dict[str, str]],
    timeouts: dict[str, str],
    fidelity: str,
    name: str,
    as_json: bool,
    **impairments: Any,
) -> int:
    """Bring up a lab: hosts with a media driver each, and links with these impairments.

    It stays until `windtunnel lab down`. A channel in --observe contains colons, which is fine:
    `--observe '1001:a:b:aeron:udp?endpoint=${b}:24325'`.
    """
    from windtunnel.harness.lab.control.launch import bring_up
    from windtunnel.harness.lab.errors import LabError
    from windtunnel.harness.lab.options import LinkOptions, lab_options

    given = cast(LinkOptions, impairments)
    try:
        options = lab_options(
            hosts=hosts.split(","),
            link=None,
            links=dict.fromkeys(links, given) if links else None,
            impairments={} if links else given,
            observe="all" if observe == ("all",) else [_observed(each) for each in observe],
            timeouts=timeouts,
            driver=driver,
            drivers=drivers,
            fidelity=fidelity,
            name=scenario_name(name),
            about="",
            seed=seed,
            out=out.resolve(),
            folder=Path.cwd(),
            argv=sys.argv,
        )
        found = bring_up(name, options, lambda text: click.echo(text, err=True))
    except LabError as error:
        raise Failure(str(error), exit_code.HARNESS) from error
    if as_json:
        click.echo(json.dumps(found))
        return exit_code.OK
    for host, address in found["addresses"].items():
        echo(f"host {host}: {address}, AERON_DIR {found['aeron_dirs'][host]}")
    echo(f"run folder: {found['run_dir']}")
    return exit_code.OK


def _observed(text: str) -> dict[str, Any]:
    """Parse the value of --observe."""
    parts = text.split(":", 3)
    if len(parts) != 4 or not parts[0].lstrip("-").isdigit():
        expected = "expected STREAM:FROM:TO:CHANNEL, such as 1001:a:b:aeron:udp?endpoint=${b}:24325"
        raise click.BadParameter(f"{expected}, found {text!r}", param_hint="--observe")
    stream, source, to, channel = parts
    return {"stream": int(stream), "from": source, "to": to, "channel": channel}
