"""`windtunnel bench`: our driver and archive and the real ones by turns, and how they compare."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.bench import bench_alone
from windtunnel.harness.cli.bench.bench_table import number, show, view
from windtunnel.harness.cli.failure import Failure, one_line

if TYPE_CHECKING:
    from windtunnel.harness.bench.archive_host import ArchiveSubject
    from windtunnel.harness.bench.measure import Reading
    from windtunnel.harness.bench.plan import BenchSettings
    from windtunnel.harness.bench.subject import DriverSubject

HEADLINES = ("record-messages", "replay-messages")
"""What is told of a reading with more than one value that matters; else it is the first."""


def _pairs(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    """NAME=VALUE options as a mapping."""
    found = {}
    for text in texts:
        name, mark, value = text.partition("=")
        if not mark or not name:
            raise click.BadParameter(f"expected NAME=VALUE, found {text!r}")
        found[name] = value
    return found


def _names(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[str, ...] | None:
    """A list with commas; what may stand in it is looked at later."""
    return None if text is None else tuple(part.strip() for part in text.split(","))


@click.command(
    short_help="Measure our driver and archive beside the real ones.",
    epilog="\b\nExit codes: 0 measured; 1 a floor was missed (--enforce); 2 a reading is void;\n"
    "3 a driver cannot be started; 64 wrong command line.\n",
)
@click.option("--rounds", type=click.IntRange(1, 1000), default=3, show_default=True)
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 600.0),
    default=2.0,
    show_default=True,
    help="How long each reading is, after a first second that does not count.",
)
@click.option("--only", callback=_names, metavar="CASE,...", help="[default: all cases]")
@click.option("--drivers", callback=_names, metavar="ours,c,java", help="[default: all]")
@click.option("--window", default="2m", show_default=True, help="rcv-wnd and socket buffers.")
@click.option("--term-length", default="16m", show_default=True)
@click.option("--mtu", default="", help="[default: the driver's own]")
@click.option(
    "--threading-mode",
    type=click.Choice(["DEDICATED", "SHARED_NETWORK", "SHARED"], case_sensitive=False),
    default="DEDICATED",
    show_default=True,
    help="Of both drivers.",
)
@click.option(
    "--client-idle",
    type=click.Choice(["yield", "spin", "sleep"]),
    default="yield",
    show_default=True,
    help="What a client does when it can do nothing.",
)
@click.option(
    "--set", "both_set", multiple=True, callback=_pairs, metavar="AERON_X=...", help="For both."
)
@click.option(
    "--ours-set", multiple=True, callback=_pairs, metavar="AERON_X=...", help="For ours alone."
)
@click.option(
    "--floor",
    "floors",
    multiple=True,
    metavar="FIGURE=RATIO|FILE",
    help="Least ratio of a figure (most, where less is better); a FILE is JSON of such pairs.",
)
@click.option(
    "--frames",
    type=click.IntRange(1_000, 1_000_000_000),
    default=1_000_000,
    show_default=True,
    help="Of the case analyze: in the capture that our engines read.",
)
@click.option(
    "--frame-length",
    type=click.Choice(["64", "128", "256", "512", "1024"]),
    default="1024",
    show_default=True,
    help="Of the case analyze: bytes of each.",
)
@click.option("--enforce", is_flag=True, help="Exit 1 where a floor is missed.")
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write everything into a file, - for stdout in place of the table.",
)
def bench(
    rounds: int,
    seconds: float,
    only: tuple[str, ...] | None,
    drivers: tuple[str, ...] | None,
    window: str,
    term_length: str,
    mtu: str,
    threading_mode: str,
    client_idle: str,
    both_set: dict[str, str],
    ours_set: dict[str, str],
    floors: tuple[str, ...],
    frames: int,
    frame_length: str,
    enforce: bool,
    json_file: Path | None,
) -> int:
    """Measure our driver and the real Aeron C driver by turns, under the same loads.

    Cases: startup, udp-1344, udp-32, ipc-32, rtt-udp, rtt-ipc, and swarm: how many simulated
    trials one core makes. Both drivers serve the same client, ours. A reading in which a message
    was lost or came out of order, or in which a trial found anything wrong, is void. Two cases
    stand alone and measure no driver: analyze, the analysis of captures by our engines, and by
    tshark if it is there; lab, how many datagrams a second the relay passes on, and how many runs
    a minute namespaces and containers make.

    The cases archive-1344 and archive-64, together archive, measure our archive and Java's by
    turns, with the same client and settings: messages of that many bytes are recorded over IPC as
    fast as it goes, then replayed over IPC. Every message that comes out again is checked, and
    where the recording ends. Java's is the one in the jar that AERON_ALL_JAR names, and is left
    out where there is none.

    \b
      windtunnel bench                                 everything, some three minutes
      windtunnel bench --only udp-1344 --rounds 5 --json bench.json
      windtunnel bench --only archive --rounds 5
      windtunnel bench --only rtt-udp --client-idle spin --set AERON_SENDER_IDLE_STRATEGY=noop
      windtunnel bench --floor udp-1344=20 --enforce
    """
    from windtunnel.harness.bench.archive_host import ARCHIVES
    from windtunnel.harness.bench.plan import CASE_NAMES, GROUPS, BenchSettings
    from windtunnel.harness.bench.subject import SUBJECTS

    if only == (bench_alone.ANALYSIS,):
        return bench_alone.analysis(frames, int(frame_length), json_file)
    if only == (bench_alone.LAB,):
        return bench_alone.lab(seconds, enforce, json_file)
    settings = BenchSettings(
        rounds=rounds,
        seconds=seconds,
        cases=_known("--only", only, CASE_NAMES, GROUPS),
        drivers=_known("--drivers", drivers, tuple(SUBJECTS | ARCHIVES)),
        window=window,
        term_length=term_length,
        mtu=mtu,
        threading_mode=threading_mode.upper(),
        client_idle=client_idle,
        both_set=both_set,
        ours_set=ours_set,
    )
    return _run(settings, floors, enforce, json_file)


def _known(
    option: str,
    chosen: tuple[str, ...] | None,
    known: tuple[str, ...],
    groups: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> tuple[str, ...]:
    if chosen is None:
        return known
    meant = {each for name in chosen for each in groups.get(name, (name,))}
    for name in meant:
        if name not in known:
            options = ", ".join((*known, *groups))
            raise click.UsageError(f"{option}: {name!r} is not one of {options}")
    return tuple(name for name in known if name in meant)


def _run(
    settings: "BenchSettings", floor_texts: tuple[str, ...], enforce: bool, json_file: Path | None
) -> int:
    from windtunnel.harness.bench import archive_host, machine, rounds
    from windtunnel.harness.bench.document import bench_document
    from windtunnel.harness.bench.figures import compare, read_floors
    from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled

    try:
        floors = read_floors(floor_texts)
    except (ValueError, OSError) as error:
        raise click.UsageError(f"--floor: {error}") from error
    seen = machine.look()
    if seen.warning:
        bench_alone.note(seen.warning)
    for name, why in archive_host.archives(settings)[1].items():
        bench_alone.note(f"left out: {archive_host.ARCHIVES[name].title}: {why}")
    try:
        with one_line(), Cancellation():
            readings = rounds.run_rounds(settings, _tell_start, _tell_reading)
    except Cancelled as cancelled:
        raise Failure(str(cancelled), cancelled.exit_code) from cancelled
    comparisons = compare(readings, floors)
    document = bench_document(seen, settings, readings, comparisons)
    bench_alone.keep(document, json_file)
    if str(json_file) == "-":
        click.echo(json.dumps(document))
    else:
        show(view(seen, settings, readings, comparisons))
    if enforce and any(each.holds is False for each in comparisons):
        return bench_alone.FLOOR_MISSED
    return exit_code.INCONCLUSIVE if any(each.void for each in readings) else exit_code.OK


def _tell_start(round_index: int, subject: "DriverSubject | ArchiveSubject") -> None:
    which = "unmeasured" if round_index < 0 else f"round {round_index + 1}"
    bench_alone.note(f"{which}: {subject.title}")


def _tell_reading(reading: "Reading") -> None:
    if reading.void:
        bench_alone.note(f"  {reading.case}: VOID: {reading.void}")
    else:
        shown = [name for name in reading.values if name in HEADLINES]
        shown = shown or list(reading.values)[:1]
        told = ", ".join(f"{name} {number(reading.values[name])}" for name in shown)
        bench_alone.note(f"  {reading.case}: {told}")
