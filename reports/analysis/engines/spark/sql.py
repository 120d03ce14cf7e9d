"""Temporary views that make the analysis tables available to SQL in a Spark session.

    tables = reports.analyze(["run/captures"], outcomes_dir=Path("outcomes"))
    register(spark, tables, outcomes_dir=Path("outcomes"))
    spark.sql("select cause, count(*), max(duration_ns) from stalls group by cause").show()

Each view has the name of its table.
"""

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from windtunnel.reports.analysis.output.tables import Tables
from windtunnel.reports.analysis.streams.frame_outcomes import FRAME_OUTCOMES


def register(spark: SparkSession, tables: Tables, outcomes_dir: Path | None = None) -> list[str]:
    """Create a view of each table, and a view `outcomes` of the frame outcomes in `outcomes_dir`.
    Return the view names.
    """
    names = []
    for name, table in tables.named().items():
        spark.createDataFrame(table).createOrReplaceTempView(name)
        names.append(name)
    if outcomes_dir is not None:
        read = spark.read.schema(from_arrow_schema(FRAME_OUTCOMES)).parquet(
            str(outcomes_dir.absolute())
        )
        read.createOrReplaceTempView("outcomes")
        names.append("outcomes")
    return names
