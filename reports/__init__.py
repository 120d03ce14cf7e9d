"""HTML reports on runs, suites and matrices, and the analysis of captures.

    run folder -> series -> chart document, see charts/ ------+
                  verdict.json, run.json, ledger -> tables ---+--> page -> report.html

Reports are created from run folders alone. Creating one starts no process and changes no verdict.
If files are missing or damaged, the page is still written and lists them.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windtunnel.reports.analysis.output.tables import Tables


def analyze(
    paths: Sequence[str],
    *,
    ports: Iterable[int] = (),
    checksums: bool = False,
    messages: bool = False,
    outcomes_dir: Path | None = None,
    max_streams: int | None = None,
    max_destinations: int | None = None,
    max_gaps: int | None = None,
    max_totals: int | None = None,
    spark: "SparkSession | None" = None,
) -> "Tables":
    """Analyse captures and return Arrow tables. Example:
    `reports.analyze(["a.pcap"]).flows.to_pandas()`.

    `checksums` computes the CRC-32 of each flow's messages, `messages` returns a row per message,
    and `outcomes_dir` is a folder for the table `outcomes`, with a row per frame. `max_streams`,
    `max_destinations`, `max_gaps` and `max_totals` change the limits on what is analysed, see
    `AnalysisOptions`. With a Spark session, the analysis runs on its workers, and
    `reports.analysis.engines.spark.sql.register` creates views of the tables. Needs the extra
    `spark`; raises the errors of `windtunnel.reports.analysis.analyze`.
    """
    from windtunnel.reports.analysis.analyze import analyze as analyze_captures
    from windtunnel.reports.analysis.options import AnalysisOptions
    from windtunnel.reports.analysis.reading.totals import TOTALS_MAX
    from windtunnel.reports.analysis.streams.repair import GAPS_MAX
    from windtunnel.reports.analysis.streams.stream_limit import DESTINATIONS_MAX, STREAMS_MAX

    options = AnalysisOptions(
        checksums=checksums,
        messages=messages,
        outcomes_dir=outcomes_dir,
        max_streams=max_streams or STREAMS_MAX,
        max_destinations=max_destinations or DESTINATIONS_MAX,
        max_gaps=max_gaps or GAPS_MAX,
        max_totals=max_totals or TOTALS_MAX,
    )
    return analyze_captures(paths, ports=ports, options=options, spark=spark)
