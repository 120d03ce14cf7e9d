"""Draw what a run left behind, and tell what captures hold.

    run folder -> counter_lines, marks -> series -> charts ---+
                  verdict.json, run.json, ledger -> tables ---+--> page -> report.html

A report is made from run folders alone: it starts nothing, judges nothing and changes nothing. What
is missing or damaged is said on the page; it never stops the page.
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
    fates_to: Path | None = None,
    spark: "SparkSession | None" = None,
) -> "Tables":
    """What captures tell, as Arrow tables: `reports.analyze(["a.pcap"]).flows.to_pandas()`.

    `checksums` works out the CRC-32 of all messages of a flow, `messages` tells each of them,
    `fates_to` is a folder for a row of each frame. With a Spark session its workers do the work,
    and `reports.analysis.engines.spark.sql.register` makes views of the tables. Needs the extra
    `spark`; raises as `windtunnel.reports.analysis.analyze` does.
    """
    from windtunnel.reports.analysis.analyze import AnalysisOptions
    from windtunnel.reports.analysis.analyze import analyze as analyze_captures

    wanted = AnalysisOptions(checksums=checksums, messages=messages, fates_to=fates_to)
    return analyze_captures(paths, ports=ports, wanted=wanted, spark=spark)
