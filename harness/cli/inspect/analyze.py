"""`windtunnel analyze`: analyses loss and recovery in captures of Aeron traffic."""

import gc
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure

if TYPE_CHECKING:
    from windtunnel.reports.analysis.options import AnalysisOptions
    from windtunnel.reports.analysis.output.tables import Tables

EXIT_CODES = (
    "\b\nExit codes: 0 all captures were read; 1 no Aeron frame was found; 2 the result is\n"
    "partial or unreliable; 3 the engine cannot run; 64 invalid command line.\n"
)


@click.command(short_help="Analyse loss and recovery in captures.", epilog=EXIT_CODES)
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option(
    "--port",
    "ports",
    multiple=True,
    type=click.IntRange(1, 65_535),
    help="Analyse only datagrams with this UDP port. Can be repeated.",
)
@click.option(
    "--spark",
    "on_spark",
    is_flag=True,
    help="Use Spark, on all local cores or on the master set by spark-submit.",
)
@click.option(
    "--master", metavar="URL", help="Use Spark with this master: local[4], spark://host:7077, ..."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the tables as Parquet files to this folder, replacing existing ones.",
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a self-contained HTML page with charts.",
)
@click.option(
    "--report",
    "into_report",
    is_flag=True,
    help="If CAPTURE is a run folder: write the page into it, and add a summary to its report.",
)
@click.option(
    "--outcomes", is_flag=True, help="With --out: also write a table with one row per frame."
)
@click.option(
    "--messages", is_flag=True, help="Also write a table with one row per message and its CRC-32."
)
@click.option(
    "--max-streams",
    type=click.IntRange(1),
    help="Analyse at most this many streams, and as many destinations and receivers in total.  "
    "[default: 16384]",
)
@click.option(
    "--max-destinations",
    type=click.IntRange(1),
    help="Analyse at most this many destinations and receivers of a stream.  [default: 256]",
)
@click.option(
    "--max-gaps",
    type=click.IntRange(1),
    help="Track at most this many gaps, divided equally among the streams.  [default: 524288]",
)
@click.option(
    "--max-totals",
    type=click.IntRange(1),
    help="Count the frames of at most this many combinations of stream, capture point, addresses, "
    "frame type and term.  [default: 262144]",
)
@click.option("--json", "as_json", is_flag=True, help="Print all tables as one JSON document.")
def analyze(
    captures: tuple[str, ...],
    ports: tuple[int, ...],
    on_spark: bool,
    master: str | None,
    out: Path | None,
    html: Path | None,
    into_report: bool,
    outcomes: bool,
    messages: bool,
    max_streams: int | None,
    max_destinations: int | None,
    max_gaps: int | None,
    max_totals: int | None,
    as_json: bool,
) -> int:
    """Show which frames were lost in captures, which NAKs followed, and how long recovery took.

    CAPTURE is a file, a pattern, a folder, a run folder, or NAME=PATTERN, where NAME is the capture
    point. Reads pcap and pcapng, plain or compressed (gz, xz, zst), on one core or, with --spark,
    on several.

    \b
      windtunnel analyze runs/<suite>/<run> --report
      windtunnel analyze pub='pub/*.pcap.gz' sub='sub/*.pcap.gz' --port 24325
      windtunnel analyze big.pcap --spark --out tables --html report.html
    """
    if outcomes and out is None:
        raise click.UsageError(
            "--outcomes needs --out: a table with one row per frame is only written to files"
        )
    if into_report and not (len(captures) == 1 and RunDir(Path(captures[0])).manifest.is_file()):
        raise click.UsageError("--report needs exactly one CAPTURE, which must be a run folder")
    with _failures():
        from windtunnel.harness.artifact.regular_file import real_path
        from windtunnel.reports.analysis.options import AnalysisOptions
        from windtunnel.reports.analysis.reading.totals import TOTALS_MAX
        from windtunnel.reports.analysis.streams.repair import GAPS_MAX
        from windtunnel.reports.analysis.streams.stream_limit import DESTINATIONS_MAX, STREAMS_MAX

        options = AnalysisOptions(
            messages=messages,
            outcomes_dir=out / "outcomes" if outcomes and out else None,
            max_streams=max_streams or STREAMS_MAX,
            max_destinations=max_destinations or DESTINATIONS_MAX,
            max_gaps=max_gaps or GAPS_MAX,
            max_totals=max_totals or TOTALS_MAX,
        )
        tables = _analyze(captures, ports, options, on_spark or master is not None, master)
        _write(tables, out, html, RunDir(real_path(Path(captures[0]))) if into_report else None)
    if as_json:
        click.echo(json.dumps(_document(tables)))
    else:
        _print(tables)
    if tables.is_partial:
        return exit_code.INCONCLUSIVE
    return exit_code.OK if sum(tables.captures["frames"].to_pylist()) else exit_code.NOTHING


def _write(tables: "Tables", out: Path | None, html: Path | None, run: RunDir | None) -> None:
    from windtunnel.harness.artifact.regular_file import real_path
    from windtunnel.reports.analysis.output.page import write_capture_page
    from windtunnel.reports.analysis.output.run_page import write_run_analysis
    from windtunnel.reports.analysis.output.tables import write_tables

    try:
        if out is not None:
            write_tables(tables, out)
        if html is not None:
            write_capture_page(tables, real_path(html.parent) / html.name)
        if run is not None:
            write_run_analysis(tables, run)
    except OSError as error:
        text = f"{error.filename or out or html}: {error.strerror or error}"
        raise Failure(text, exit_code.HARNESS) from error


def _analyze(
    captures: tuple[str, ...],
    ports: tuple[int, ...],
    options: "AnalysisOptions",
    on_spark: bool,
    master: str | None,
) -> "Tables":
    from windtunnel.reports.analysis.analyze import READINGS, analyze
    from windtunnel.reports.analysis.reading.capture_files import find_captures

    if on_spark:
        from windtunnel.reports.analysis.engines.spark.spark_engine import start_session

        find_captures(list(captures))
        session = start_session(master, {"spark.log.level": "ERROR", "spark.ui.enabled": "false"})
        try:
            return analyze(captures, ports=ports, options=options, spark=session)
        finally:
            session.stop()
    total = READINGS * sum(each.length for each in find_captures(list(captures)))
    with _progress(total) as advance:
        # What has been imported stays, so no garbage collection need look at it.
        gc.freeze()
        return analyze(captures, ports=ports, options=options, on_progress=advance)


@contextmanager
def _failures() -> Iterator[None]:
    """Context manager that converts the analysis's expected errors to Failure."""
    try:
        from windtunnel.reports.analysis.engines.spark.spark_engine import EngineError
        from windtunnel.reports.analysis.reading.capture_files import CapturePathError
    except ImportError as error:
        text = f"{error}: the analysis needs Arrow: install windtunnel[spark]"
        raise Failure(text, exit_code.HARNESS) from error
    try:
        yield
    except CapturePathError as error:
        raise Failure(str(error), exit_code.USAGE) from error
    except EngineError as error:
        raise Failure(str(error), exit_code.HARNESS) from error


@contextmanager
def _progress(total_bytes: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on stderr if it is a terminal.

    For compressed files the total is too small, because their uncompressed length is unknown.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=total_bytes)
        yield lambda count: progress.update(task, advance=count)


def _print(tables: "Tables") -> None:
    from windtunnel.harness.cli.render.table import echo
    from windtunnel.reports.analysis.output.summary import split_line, summary_lines

    for line in summary_lines(tables):
        for each in split_line(line):
            echo(each)


def _document(tables: "Tables") -> dict[str, Any]:
    return {
        "schema": "windtunnel-analyze/1",
        "is_partial": tables.is_partial,
        "problems": tables.problems,
        **{name: table.to_pylist() for name, table in tables.named().items()},
    }
