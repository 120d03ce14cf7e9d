"""Spark reads the same rows as the local engine, however a capture is cut into partitions."""

import json

import numba
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.golden.reader import GOLDEN, load
from tests.stand_ins import made_capture as made
from windtunnel import reports
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.engines.local.local_engine import local_frames
from windtunnel.reports.analysis.engines.spark.spark_analysis import (
    ARROW_BATCH_SETTING,
    analyze_on_spark,
)
from windtunnel.reports.analysis.engines.spark.sql import register
from windtunnel.reports.analysis.options import AnalysisOptions
from windtunnel.reports.analysis.reading.capture_files import find_captures
from windtunnel.reports.analysis.reading.parts import ReadSettings, sum_captures
from windtunnel.reports.analysis.reading.schema import CAPTURES, FRAMES
from windtunnel.reports.analysis.sources.pcap_source import CaptureOptionError, read_options
from windtunnel.reports.analysis.streams.frame_outcomes import FRAME_OUTCOMES, in_order

CAPTURES_OF_SETS = sorted(GOLDEN.glob("*/*.pcap.xz"))
LONG_CAPTURE_BYTES = 200_000_000
SPARK_LIMIT_S = 600
"""A worker imports numba and Arrow first, and a busy machine has two cores for all."""
KEY = [("file_index", "ascending"), ("record_at", "ascending"), ("frame_index", "ascending")]


def rows(table: pa.Table) -> pa.Table:
    """In capture order, without the chunks and nullability that an engine chose."""
    return table.cast(FRAMES).sort_by(KEY).combine_chunks()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """All golden captures, unpacked, so that they can be split."""
    folder = tmp_path_factory.mktemp("plain")
    for path in CAPTURES_OF_SETS:
        name = f"{path.parent.name}-{path.name.removesuffix('.xz')}"
        (folder / name).write_bytes(load(path.parent.name, path.name.removesuffix(".xz")))
    return folder


@pytest.mark.spark
@pytest.mark.timeout(SPARK_LIMIT_S)
def test_golden_captures_give_the_rows_of_the_local_engine(spark, plain):
    local = local_frames(find_captures([str(plain)]), ReadSettings())
    expected = rows(local.table())
    assert expected.num_rows == sum(local.captures["frames"].to_pylist()) == 19_704
    read = spark.read.format("aeron.pcap").option("cell", 1 << 17)
    for parts in (1, 12):
        frames = read.option("parts", parts).load(str(plain))
        assert rows(frames.toArrow()).equals(expected)
    captures = read.option("parts", 12).option("table", "captures").load(str(plain)).toArrow()
    assert captures.num_rows > 12
    assert sum_captures(captures.cast(CAPTURES)).equals(local.captures)


@pytest.mark.spark
@pytest.mark.timeout(SPARK_LIMIT_S)
def test_compressed_captures_give_one_partition_each_and_the_same_rows(spark):
    given = [str(path) for path in CAPTURES_OF_SETS]
    expected = rows(local_frames(find_captures(given), ReadSettings()).table())
    frames = spark.read.format("aeron.pcap").option("paths", json.dumps(given)).load()
    assert frames.rdd.getNumPartitions() == len(given)
    assert rows(frames.toArrow()).equals(expected)


@pytest.mark.spark
@pytest.mark.timeout(SPARK_LIMIT_S)
@pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="plain Python takes an hour for 200 MB of payload"
)
def test_a_long_capture_gives_the_same_rows_in_one_partition_and_in_many(spark, tmp_path):
    path = tmp_path / "long.pcap"
    count = made.write_long_capture(path, LONG_CAPTURE_BYTES)
    try:
        read = spark.read.format("aeron.pcap")
        one = read.option("split", "false").load(str(path))
        many = read.option("split", "true").option("parts", 12).load(str(path))
        assert (one.rdd.getNumPartitions(), many.rdd.getNumPartitions()) == (1, 12)
        whole = rows(one.toArrow())
        assert whole.num_rows == count
        assert rows(many.toArrow()).equals(whole)
        assert rows(local_frames(find_captures([str(path)]), ReadSettings()).table()).equals(whole)
    finally:
        path.unlink()


@pytest.mark.spark
@pytest.mark.timeout(SPARK_LIMIT_S)
def test_sql_reaches_the_columns(spark, plain):
    spark.read.format("aeron.pcap").load(str(plain / "clean-capture.pcap")).createTempView("clean")
    counted = spark.sql("select frame_type, count(*) from clean group by 1 order by 1").collect()
    assert [tuple(row) for row in counted] == [
        ("DATA", 938), ("HEARTBEAT", 49), ("NAK", 3), ("PAD", 18), ("SETUP", 1), ("SM", 61),
    ]  # fmt: skip
    spark.catalog.dropTempView("clean")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "expected a path"),
        ({"path": "a", "port": "1"}, "option 'port'"),
        ({"path": "a", "ports": "1,x"}, "invalid literal"),
        ({"path": "a", "ports": "70000"}, "port 70000: expected 1 to 65535"),
        ({"path": "a", "table": "rows"}, "table 'rows'"),
        ({"path": "a", "split": "no"}, "expected true or false"),
        ({"path": "a", "cell": "1"}, "cell of 1 bytes"),
        ({"path": "a", "parts": "-1"}, "-1 parts"),
        ({"paths": "a.pcap"}, "invalid options for aeron.pcap"),
    ],
)
def test_says_what_is_wrong_with_an_option(options, text):
    with pytest.raises(CaptureOptionError, match=text):
        read_options(options)


def test_reads_all_options():
    paths, table, settings = read_options(
        {"paths": '["a", "b"]', "ports": "1, 2", "hash": "false", "parts": "3", "table": "captures"}
    )
    assert (paths, table) == (["a", "b"], "captures")
    assert settings == ReadSettings(ports=(1, 2), keeps_hash=False, parts=3)


def fates_of(folder):
    return in_order(pq.read_table(folder, schema=FRAME_OUTCOMES))


@pytest.mark.spark
@pytest.mark.timeout(SPARK_LIMIT_S)
def test_both_engines_come_to_the_same_tables_and_fates(spark, plain, tmp_path):
    # The whole capture of the Java driver would be a further vantage point of its pieces' stream.
    paths = [path for path in sorted(plain.iterdir()) if path.stem != "java-cubic-loss-capture"]
    names = [f"{path.stem}={path}" for path in paths]
    names += [f"{end}={path}" for end, path in two_points(tmp_path)]
    here = analyze(names, options=AnalysisOptions(messages=True, outcomes_dir=tmp_path / "here"))
    rows_at_once = spark.conf.get(ARROW_BATCH_SETTING)
    there = analyze(
        names, options=AnalysisOptions(messages=True, outcomes_dir=tmp_path / "there"), spark=spark
    )
    assert spark.conf.get(ARROW_BATCH_SETTING) == rows_at_once
    assert here.gaps.num_rows > 57 + 25 + 2 + 1 + 1
    assert here.links.num_rows == 1
    for name, table in here.named().items():
        assert there.named()[name].equals(table), name
    fates = fates_of(tmp_path / "here")
    assert set(fates["basis"].to_pylist()) == {"inferred", "joined"}
    assert fates_of(tmp_path / "there").equals(fates)


def two_points(folder):
    """A stream captured before and behind a link that loses, copies and turns around."""
    sent = made.stream_packets(400, session=99)
    came = [each._replace(time_ns=each.time_ns + 20_000) for each in sent]
    came[20], came[21] = (
        came[21]._replace(time_ns=came[20].time_ns), came[20]._replace(time_ns=came[21].time_ns),
    )  # fmt: skip
    came = [came[0], *came[2:200], came[199], *came[200:]]
    for end, packets in (("near", sent), ("far", came)):
        path = folder / f"{end}.pcap"
        path.write_bytes(made.pcap(packets))
        yield end, path


@pytest.mark.spark
@pytest.mark.timeout(SPARK_LIMIT_S)
def test_a_file_that_cannot_be_split_is_read_whole(spark, tmp_path):
    path = tmp_path / "two.pcapng"
    path.write_bytes(2 * made.pcapng(made.stream_packets(600)))
    settings = ReadSettings(parts=3, cell_length=1 << 17)
    told = analyze_on_spark(spark, [str(path)], settings)
    assert told.captures["frames"].to_pylist() == [1_200]
    assert told.flows["first_frames"].to_pylist() == [600]


@pytest.mark.spark
@pytest.mark.timeout(SPARK_LIMIT_S)
def test_sql_reaches_the_tables_of_an_analysis(spark, tmp_path):
    paths = [str(GOLDEN / "loss-reliable" / "capture.pcap.xz")]
    tables = reports.analyze(paths, messages=True, outcomes_dir=tmp_path / "fates")
    names = register(spark, tables, outcomes_dir=tmp_path / "fates")
    assert set(names) == {*tables.named(), "fates"}

    def ask(text):
        return [tuple(row) for row in spark.sql(text).collect()]

    assert ask("select outcome, count(*), sum(length) from gaps group by 1") == [
        ("repaired", 57, 74_848)
    ]
    assert ask("select count(*), sum(length) from messages") == [(600, 1_208_900)]
    assert ask("select fate, count(*) from fates group by 1 order by 1") == [
        ("first", 1_205), ("resent", 68),
    ]  # fmt: skip
    for name in names:
        spark.catalog.dropTempView(name)
