"""Draw what a run left behind, and tell what captures hold.

    run folder -> counter_lines, marks -> series -> charts ---+
                  verdict.json, run.json, ledger -> tables ---+--> page -> report.html

A report is made from run folders alone: it starts nothing, judges nothing and changes nothing. What
is missing or damaged is said on the page; it never stops the page.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reports.analysis.tables import Tables


def analyze(
    paths: Sequence[str], *, ports: Iterable[int] = (), spark: "SparkSession | None" = None
) -> "Tables":
    """What captures tell: see `reports.analysis.analyze`, which needs the extra `spark`."""
    from reports.analysis.analyze import analyze as analyze_captures

    return analyze_captures(paths, ports=ports, spark=spark)
