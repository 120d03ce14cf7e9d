"""`windtunnel bench`: benchmarks Windtunnel's driver and archive against Aeron's."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from windtunnel.harness.cli.bench import bench_alone, bench_drivers, bench_recovery
from windtunnel.harness.cli.options import NumberRange, in_existing_folder, name_values


def _names(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[str, ...] | None:
    """Split a comma-separated list of names (click callback). The names are validated later."""
    return None if text is None else tuple(part.strip() for part in text.split(","))


@click.command(
    short_help="Benchmark Windtunnel's driver and archive against Aeron's.",
    epilog="\b\nExit codes: 0 measured; 1 a result is below its --floor (with --enforce); "
    "2 a measurement is void;\n"
    "3 a driver cannot be started; 64 invalid command line.\n",
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    default=3,
    show_default=True,
    help="Number of rounds. Each result is the median of all rounds.",
)
@click.option(
    "--seconds",
    type=NumberRange(0.1, 600.0),
    default=2.0,
    show_default=True,
    help="Duration of each measurement, after one second of warm-up.",
)
@click.option(
    "--only", callback=_names, metavar="CASE,...", help="Benchmark cases to run.  [default: all]"
)
@click.option(
    "--drivers",
    callback=_names,
    metavar="ours,c,java",
    help="Drivers and archives to measure.  [default: all]",
)
@click.option(
    "--window",
    default="2m",
    show_default=True,
    help="Receiver window (rcv-wnd) and socket buffer size.",
)
@click.option("--term-length", default="16m", show_default=True, help="Term length.")
@click.option("--mtu", default="", help="MTU.  [default: the driver's]")
@click.option(
    "--threading-mode",
    type=click.Choice(["DEDICATED", "SHARED_NETWORK", "SHARED"], case_sensitive=False),
    default="DEDICATED",
    show_default=True,
    help="Threading mode of both drivers.",
)
@click.option(
    "--peer",
    default="pyaeron",
    show_default=True,
    metavar="pyaeron|aeronmd:PATH",
    help="The driver to compare with: Aeron's C driver in pyaeron, or a program that reads its "
    "settings like it.",
)
@click.option(
    "--client",
    type=click.Choice(["windtunnel", "pyaeron"]),
    default="windtunnel",
    show_default=True,
    help="Client of the streams and round trips, with both drivers.",
)
@click.option(
    "--client-idle",
    type=click.Choice(["yield", "spin", "sleep"]),
    default="yield",
    show_default=True,
    help="Idle strategy of the benchmark's clients.",
)
@click.option(
    "--memory",
    type=click.Path(exists=True, file_okay=False, writable=True),
    metavar="DIR",
    help="Create the drivers' directories in this one, such as a hugetlbfs.  [default: /dev/shm]",
)
@click.option(
    "--set",
    "both_set",
    multiple=True,
    callback=name_values,
    metavar="AERON_X=...",
    help="Set this environment variable for both drivers.",
)
@click.option(
    "--ours-set",
    multiple=True,
    callback=name_values,
    metavar="AERON_X=...",
    help="Set this environment variable for Windtunnel's driver only.",
)
@click.option(
    "--floor",
    "floors",
    multiple=True,
    metavar="FIGURE=RATIO|FILE",
    help="Minimum ratio of our figure to the peer's, or maximum if less is better. FILE contains "
    "these pairs as JSON.",
)
@click.option(
    "--frames",
    type=click.IntRange(1_000, 1_000_000_000),
    default=1_000_000,
    show_default=True,
    help="For the case analyze: number of frames in the generated capture.",
)
@click.option(
    "--frame-length",
    type=click.Choice(["64", "128", "256", "512", "1024"]),
    default="1024",
    show_default=True,
    help="For the case analyze: bytes in each frame.",
)
@click.option(
    "--enforce", is_flag=True, help="Exit with status 1 if a result is below its --floor."
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=in_existing_folder,
    help="Write the results to this file as JSON. - prints them on stdout instead of the table.",
)
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write a page to this file: figures with bars and latencies, or for the case "
    "recovery with positions over time.",
)
@click.option(
    "--readings",
    type=click.Path(dir_okay=False, path_type=Path),
    help="For the case recovery: append each reading to this file, and do not repeat those that "
    "are in it, so that an interrupted benchmark can be continued.",
)
def bench(
    rounds: int,
    seconds: float,
    only: tuple[str, ...] | None,
    drivers: tuple[str, ...] | None,
    threading_mode: str,
    floors: tuple[str, ...],
    frames: int,
    frame_length: str,
    enforce: bool,
    json_file: Path | None,
    report: Path | None,
    readings: Path | None,
    **others: Any,
) -> int:
    """Measure Windtunnel's driver and the Aeron C driver alternately, under the same load.

    The case startup measures the start of a driver, udp-N and ipc-N messages of N bytes at full
    speed: on one stream or ten, to one destination, three (mdc) or a multicast group, with 1 % of
    the frames lost, or from three sources. rtt-udp and rtt-ipc measure 10,000 round trips a second,
    each from when its message was due, and swarm simulated trials per minute on one core. Both
    drivers serve the same --client, but for python-offer and python-poll: single offers and polls
    by Windtunnel's client and by pyaeron's, a C extension. A measurement is void if a message was
    lost or reordered, or if a trial found a violation. Three other cases must each be selected
    alone. analyze measures how fast Windtunnel's engines and, if installed, tshark analyse
    captures. lab measures the relay in datagrams per second, and namespaces and containers in runs
    per minute. recovery measures the modes of loss recovery on paths with losses, beside the real C
    driver with its default NAK delay and with the best one, mostly on virtual time.

    The cases archive-1344 and archive-64 (archive selects both) measure Windtunnel's archive and
    Aeron's Java archive alternately, with the same client and settings: messages of that many bytes
    are recorded and replayed over IPC, and checked. The Java archive is loaded from the jar in
    $AERON_ALL_JAR, and skipped if that is not set.

    \b
      windtunnel bench                                 all cases, about seven minutes
      windtunnel bench --only rtt-udp --client-idle spin --set AERON_SENDER_IDLE_STRATEGY=noop
      windtunnel bench --only recovery,long-path --rounds 5 --readings recovery.jsonl
      windtunnel bench --only udp-1344 --rounds 5 --floor udp-1344=8 --enforce
      windtunnel bench --peer aeronmd:build/aeronmd --client pyaeron
      windtunnel bench --memory /mnt/huge --set AERON_FILE_PAGE_SIZE=2m
    """
    from windtunnel.harness.bench.archive_host import ARCHIVES
    from windtunnel.harness.bench.plan import CASE_NAMES, GROUPS, BenchSettings, length_of
    from windtunnel.harness.bench.subject import SUBJECTS, peer_of

    paths = _recovery_paths(only, readings)
    if paths is not None:
        return bench_recovery.recovery(rounds, paths, enforce, json_file, report, readings)
    if only == (bench_alone.ANALYSIS,):
        return bench_alone.analysis(frames, int(frame_length), rounds, json_file)
    if only == (bench_alone.LAB,):
        return bench_alone.lab(seconds, enforce, json_file)
    settings = BenchSettings(
        rounds=rounds,
        seconds=seconds,
        cases=_cases(only, CASE_NAMES, GROUPS),
        drivers=_known("--drivers", drivers, tuple(SUBJECTS | ARCHIVES)),
        threading_mode=threading_mode.upper(),
        # These options have the names of their settings.
        **others,
    )
    _require("--peer", lambda: peer_of(settings))
    _require("--window", lambda: length_of(settings.window))
    return bench_drivers.drivers(settings, floors, enforce, json_file, report)


def _require(option: str, check: Callable[[], object]) -> None:
    """Raise UsageError if a check raises ValueError, whose text says what was expected."""
    try:
        check()
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from error


def _cases(
    only: tuple[str, ...] | None, known: tuple[str, ...], groups: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Return the selected cases. Raises UsageError for an unknown case, and for one that must be
    selected alone.
    """
    for name in only or ():
        if name in bench_alone.ALONE:
            text = f"--only: {name} must be selected alone, found {','.join(only or ())}"
            raise click.UsageError(text)
    return _known("--only", only, known, groups, also=bench_alone.ALONE)


def _recovery_paths(only: tuple[str, ...] | None, readings: Path | None) -> tuple[str, ...] | None:
    """Return the paths that were chosen for the case recovery, or None for the other cases, which
    have no file of readings.
    """
    if only and only[0] == bench_alone.RECOVERY:
        return only[1:]
    if readings is not None:
        raise click.UsageError("--readings: expected --only recovery, which alone has it")
    return None


def _known(
    option: str,
    chosen: tuple[str, ...] | None,
    known: tuple[str, ...],
    groups: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    also: tuple[str, ...] = (),
) -> tuple[str, ...]:
    if chosen is None:
        return known
    selected = {each for name in chosen for each in groups.get(name, (name,))}
    for name in selected:
        if name not in known:
            choices = ", ".join((*known, *groups, *also))
            raise click.UsageError(f"{option}: expected one of {choices}, found {name!r}")
    return tuple(name for name in known if name in selected)
