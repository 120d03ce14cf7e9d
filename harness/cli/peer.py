"""`windtunnel peer`: tests whether a container image keeps the contract of peers."""

import json
import tempfile
from pathlib import Path

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.lab.lab import OrderedGroup
from windtunnel.harness.cli.options import NumberRange
from windtunnel.harness.cli.render.table import echo, printable

_COLOURS = {"kept": "green", "broken": "red"}


@click.group(cls=OrderedGroup, short_help="Test a container image that contains a driver.")
def peer() -> None:
    """Test container images whose driver is to be a peer, as in `--publisher image:NAME`."""


@peer.command(
    short_help="Test the contract of an image, step by step.",
    epilog="""\b
Exit codes: 0 the image keeps the contract; 1 it does not; 3 there is no container engine; 64
invalid command line.
""",
)
@click.argument("image")
@click.option(
    "--within",
    "within_s",
    type=NumberRange(min=1.0, max=600.0),
    default=30.0,
    show_default=True,
    help="Seconds within which the image must have started its driver, or have refused to.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def check(image: str, within_s: float, as_json: bool) -> int:
    """Test step by step whether IMAGE keeps the contract of docs/peer-images.md: it exists, starts,
    writes a cnc.dat, keeps its heartbeat, honours its environment, ends on SIGTERM, and reports
    what it does not support. The first broken promise is named, with what to do.

    \b
      windtunnel peer check example/aeronmd:1.49
      windtunnel matrix --publishers image:example/aeronmd:1.49 --subscribers ours
    """
    from windtunnel.harness.cli.failure import one_line
    from windtunnel.harness.orchestrate.subjects import image_contract, peer_check

    name = image_contract.image_of(image)
    if not name:
        raise click.UsageError(f"expected the name of an image, found {printable(image[:80])!r}")
    with (
        one_line(),
        tempfile.TemporaryDirectory(
            prefix="windtunnel-peer-", ignore_cleanup_errors=True
        ) as folder,
    ):
        steps = peer_check.check(name, Path(folder), within_s)
    if as_json:
        click.echo(json.dumps(peer_check.document_of(name, steps)))
    else:
        for each in steps:
            mark = click.style(f"{each.outcome:<10}", fg=_COLOURS.get(each.outcome))
            click.echo(f"{mark}  {each.promise.step:<13}  {each.promise.expected}")
            if each.found:
                echo(f"{'':27}found: {each.found}")
                echo(f"{'':27}do: {each.promise.advice}")
    is_kept = all(each.outcome == "kept" for each in steps)
    return exit_code.OK if is_kept else exit_code.NOTHING
