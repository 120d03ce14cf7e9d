"""`windtunnel calibrate`: measures how accurately the relay or netem applies impairments."""

import json
import secrets
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure, one_line
from windtunnel.harness.cli.options import SEED, NumberRange, kernel_option

if TYPE_CHECKING:
    from windtunnel.harness.artifact.run.calibration import Calibration, Measure
    from windtunnel.harness.cli.render.table import View
    from windtunnel.harness.scenario.resolved.link_case import Backend

FLOOR_MISSED = 1
SEED_BITS = 32
UML_BUDGET_S = 1_800.0
"""Time limit in seconds for all rounds in User Mode Linux, whose only processor is slow."""


@click.command(
    short_help="Measure how accurately the relay or netem applies impairments.",
    epilog="\b\nExit codes: 0 all results are within limits; 1 a result is outside its limits; "
    "2 a round is void;\n"
    "3 this machine cannot create the lab; 64 invalid command line.\n",
)
@click.option(
    "--backend",
    type=click.Choice(["relay", "netem"]),
    default="relay",
    show_default=True,
    help="Backend that applies the impairments.",
)
@kernel_option
@click.option("--seed", type=SEED, help="Random seed.  [default: random]")
@click.option(
    "--scale",
    type=NumberRange(0.01, 100.0),
    default=1.0,
    show_default=True,
    help="Factor for the number of packets per round. To calibrate burst lengths, use 1 or more.",
)
@click.option(
    "--packets-per-s",
    type=click.IntRange(100, 50_000),
    default=10_000,
    show_default=True,
    help="Maximum sending rate.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write calibration.json and calibration.html to this folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def calibrate(
    backend: "Backend",
    kernel: str,
    seed: int | None,
    scale: float,
    packets_per_s: int,
    out: Path | None,
    as_json: bool,
) -> int:
    """Send known traffic through each impairment, and compare the measured effect with the
    requested one.

    Prints a table of loss rates, burst lengths, delay quantiles, reorder distances and more, each
    with its 99.9 % confidence interval; --out also writes a chart.
    """
    chosen = secrets.randbits(SEED_BITS) if seed is None else seed
    if kernel == "uml":
        from windtunnel.harness.cli import in_kernel

        options: dict[str, object] = {"backend": backend, "seed": chosen, "scale": scale}
        options |= {"packets-per-s": packets_per_s, "out": out}
        arguments = ["calibrate", *(["--json"] if as_json else [])]
        return in_kernel.command(arguments, options, UML_BUDGET_S * max(scale, 1.0))
    found = _measure(backend, chosen, scale, packets_per_s)
    if out is not None:
        _write(found, out)
    if as_json:
        click.echo(json.dumps(asdict(found), indent=1))
    else:
        from windtunnel.harness.cli.inspect.look import echo_plain

        echo_plain(view(found))
    if any(not each.holds for each in found.measures):
        return FLOOR_MISSED
    return exit_code.INCONCLUSIVE if found.voids else exit_code.OK


def _measure(backend: "Backend", seed: int, scale: float, packets_per_s: int) -> "Calibration":
    from windtunnel.harness.calibration.plan import impairments
    from windtunnel.harness.calibration.rounds import calibrate as measure
    from windtunnel.harness.orchestrate.fidelity import NETNS
    from windtunnel.harness.orchestrate.lab import Unsupported
    from windtunnel.harness.orchestrate.labs import labs, privileges

    with one_line():
        privileges.acquire()
        labs.require(NETNS)
        click.echo(f"seed {seed}", err=True)
        try:
            return measure(
                impairments(scale),
                backend,
                packets_per_s,
                seed,
                lambda text: click.echo(text, err=True),
            )
        except Unsupported as error:
            raise Failure(str(error), exit_code.HARNESS) from error


def _write(found: "Calibration", out: Path) -> None:
    from windtunnel.harness.artifact.regular_file import real_path
    from windtunnel.reports.measurements.calibration_page import write_calibration_page

    out = real_path(out)
    out.mkdir(parents=True, exist_ok=True)
    found.write(out / "calibration.json")
    click.echo(f"chart: {write_calibration_page(found, out)}", err=True)


def view(found: "Calibration") -> "View":
    """Return the calibration results as a table (View) for printing."""
    from windtunnel.harness.cli.render.table import Column, View

    names = (
        "impairment",
        "quantity",
        "unit",
        "requested",
        "measured",
        "99.9 % interval",
        "limit",
        "",
    )
    numbers = {"requested", "measured", "99.9 % interval"}
    return View(
        heading=f"backend {found.backend}, kernel {found.kernel}, "
        f"at most {found.packets_per_s} packets/s, seed {found.seed}",
        columns=tuple(Column(name, name in numbers) for name in names),
        rows=[_cells(each) for each in found.measures],
        document=asdict(found),
        closing="\n".join(f"VOID  {text}" for text in found.voids),
    )


def _cells(measure: "Measure") -> tuple[str, ...]:
    return (
        measure.impairment,
        measure.quantity,
        measure.unit,
        "-" if measure.asked is None else f"{measure.asked:.3f}",
        f"{measure.delivered:.3f}",
        f"{measure.low:.3f} .. {measure.high:.3f}",
        measure.floor or "-",
        ("holds" if measure.holds else "MISSED") if measure.floor else "",
    )
