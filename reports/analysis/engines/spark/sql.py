"""SQL over the tables of an analysis, in a Spark session.

    tables = reports.analyze(["run/captures"], fates_to=Path("fates"))
    register(spark, tables, fates=Path("fates"))
    spark.sql("select cause, count(*), max(duration_ns) from stalls group by cause").show()

Each table is a temporary view of its name.
"""

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from windtunnel.reports.analysis.output.tables import Tables
from windtunnel.reports.analysis.streams.frame_outcomes import FATES


def register(spark: SparkSession, tables: Tables, fates: Path | None = None) -> list[str]:
    """Make a view of each table, and one called `fates` of that folder; returns their names."""
    names = []
    for name, table in tables.named().items():
        spark.createDataFrame(table).createOrReplaceTempView(name)
        names.append(name)
    if fates is not None:
        read = spark.read.schema(from_arrow_schema(FATES)).parquet(str(fates.absolute()))
        read.createOrReplaceTempView("fates")
        names.append("fates")
    return names
