"""Spark computes the same tables as the local engine for every input and any partitioning.

All tests that need a Spark session are in this file: pytest-xdist runs a file in one process, so
they share one JVM and its Python workers, which cost more than most of these tests.
"""

import json
from dataclasses import replace

import numba
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.golden.archive_files import unpack
from tests.golden.reader import GOLDEN, load
from tests.stand_ins import synthetic_capture as made
from tests.stand_ins.lossy_stream import LossyStream, Plan
from tests.unit.reports.analysis import test_claimed_gaps, test_claimed_terms
from tests.unit.reports.analysis.sources import test_recording_tables, test_run_tables
from tests.unit.reports.analysis.test_claimed_endpoints import LIMITED, write_endpoints
from tests.unit.reports.analysis.test_claimed_gaps import write_gaps
from tests.unit.reports.analysis.test_claimed_streams import (
    FRAMES_OF,
    assert_is_limited,
    write_claims,
)
from tests.unit.reports.analysis.test_claimed_terms import write_many
from windtunnel import reports
from windtunnel.harness.dissect.capture.capture_stream import CELL_LENGTH
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.engines.local.local_engine import local_frames
from windtunnel.reports.analysis.engines.spark.spark_analysis import (
    ARROW_BATCH_SETTING,
    analyze_on_spark,
)
from windtunnel.reports.analysis.engines.spark.spark_engine import EngineError, start_session
from windtunnel.reports.analysis.engines.spark.sql import register
from windtunnel.reports.analysis.options import AnalysisOptions
from windtunnel.reports.analysis.reading.capture_files import find_captures
from windtunnel.reports.analysis.reading.parts import ReadSettings, sum_captures
from windtunnel.reports.analysis.reading.schema import CAPTURES, FRAMES
from windtunnel.reports.analysis.sources.recording_source import TABLES
from windtunnel.reports.analysis.sources.recording_tables import RECORDINGS
from windtunnel.reports.analysis.sources.run_source import SOURCES
from windtunnel.reports.analysis.sources.run_tables import READERS
from windtunnel.reports.analysis.streams.frame_outcomes import FRAME_OUTCOMES, in_order

# A worker imports numba and Arrow first, and a busy machine has two cores for all.
pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

CAPTURES_OF_SETS = sorted(GOLDEN.glob("*/*.pcap.xz"))
KEY = [("file_index", "ascending"), ("record_at", "ascending"), ("frame_index", "ascending")]
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
    # Every query is new and short: Java would spend more time on optimising than it saves.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
}
PLANS = [
    Plan(7, frames=150, receivers=2, in_group=True, loss=0.05, resend_loss=0.2, sees_others=True),
    Plan(3, frames=150, loss=0.05, late=0.05, is_reliable=False),
]


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    """A session of two threads, without a web UI and with few partitions."""
    settings = {**SETTINGS, "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}
    try:
        session = start_session("local[2]", settings)
    except EngineError as error:
        pytest.skip(str(error))
    yield session
    session.stop()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """All golden captures, unpacked, so that they can be split."""
    folder = tmp_path_factory.mktemp("plain")
    for path in CAPTURES_OF_SETS:
        name = f"{path.parent.name}-{path.name.removesuffix('.xz')}"
        (folder / name).write_bytes(load(path.parent.name, path.name.removesuffix(".xz")))
    return folder


def rows(table: pa.Table) -> pa.Table:
    """Return rows in capture order, without the chunks and nullability that an engine chose."""
    return table.cast(FRAMES).sort_by(KEY).combine_chunks()


def outcomes_of(folder):
    return in_order(pq.read_table(folder, schema=FRAME_OUTCOMES))


def two_points(folder):
    """A stream captured before and behind a link that loses, copies and reorders frames."""
    sent = made.stream_packets(400, session=99)
    arrived = [each._replace(time_ns=each.time_ns + 20_000) for each in sent]
    arrived[20], arrived[21] = (
        arrived[21]._replace(time_ns=arrived[20].time_ns),
        arrived[20]._replace(time_ns=arrived[21].time_ns),
    )
    arrived = [arrived[0], *arrived[2:200], arrived[199], *arrived[200:]]
    for end, packets in (("near", sent), ("far", arrived)):
        path = folder / f"{end}.pcap"
        path.write_bytes(made.pcap(packets))
        yield end, path


@pytest.mark.full
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_both_engines_give_the_same_rows(spark, tmp_path, plan):
    folder = str(LossyStream(plan).write(tmp_path))
    local_result, spark_result = analyze([folder]), analyze([folder], spark=spark)
    for name, table in local_result.named().items():
        assert getattr(spark_result, name).to_pylist() == table.to_pylist(), name


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


@pytest.mark.full
def test_compressed_captures_give_one_partition_each_and_the_same_rows(spark):
    paths = [str(path) for path in CAPTURES_OF_SETS]
    expected = rows(local_frames(find_captures(paths), ReadSettings()).table())
    frames = spark.read.format("aeron.pcap").option("paths", json.dumps(paths)).load()
    assert frames.rdd.getNumPartitions() == len(paths)
    assert rows(frames.toArrow()).equals(expected)


@pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="plain Python takes 20 s per megabyte of payload"
)
@pytest.mark.parametrize(
    ("size_bytes", "cell_length"),
    [
        pytest.param(12_000_000, 1 << 20, id="12MB", marks=pytest.mark.full),
        pytest.param(200_000_000, CELL_LENGTH, id="200MB", marks=pytest.mark.full),
    ],
)
def test_a_long_capture_gives_the_same_rows_in_one_partition_and_in_many(
    spark, tmp_path, size_bytes, cell_length
):
    path = tmp_path / "long.pcap"
    count = made.write_long_capture(path, size_bytes)
    try:
        read = spark.read.format("aeron.pcap").option("cell", cell_length)
        one = read.option("split", "false").load(str(path))
        many = read.option("split", "true").option("parts", 12).load(str(path))
        assert (one.rdd.getNumPartitions(), many.rdd.getNumPartitions()) == (1, 12)
        whole = rows(one.toArrow())
        assert whole.num_rows == count
        assert rows(many.toArrow()).equals(whole)
        assert rows(local_frames(find_captures([str(path)]), ReadSettings()).table()).equals(whole)
    finally:
        path.unlink()


def test_sql_can_query_the_columns(spark, plain):
    spark.read.format("aeron.pcap").load(str(plain / "clean-capture.pcap")).createTempView("clean")
    counts = spark.sql("select frame_type, count(*) from clean group by 1 order by 1").collect()
    assert [tuple(row) for row in counts] == [
        ("DATA", 938), ("HEARTBEAT", 49), ("NAK", 3), ("PAD", 18), ("SETUP", 1), ("SM", 61),
    ]  # fmt: skip
    spark.catalog.dropTempView("clean")


def test_both_engines_compute_the_same_tables_and_outcomes(spark, plain, tmp_path):
    # The whole capture of the Java driver would be a further vantage point of its pieces' stream.
    paths = [path for path in sorted(plain.iterdir()) if path.stem != "java-cubic-loss-capture"]
    names = [f"{path.stem}={path}" for path in paths]
    names += [f"{end}={path}" for end, path in two_points(tmp_path)]
    local_result = analyze(
        names, options=AnalysisOptions(messages=True, outcomes_dir=tmp_path / "local")
    )
    rows_at_once = spark.conf.get(ARROW_BATCH_SETTING)
    spark_result = analyze(
        names, options=AnalysisOptions(messages=True, outcomes_dir=tmp_path / "spark"), spark=spark
    )
    assert spark.conf.get(ARROW_BATCH_SETTING) == rows_at_once
    assert local_result.gaps.num_rows > 57 + 25 + 2 + 1 + 1
    # The pieces of the Java driver's capture count as two points of one stream.
    ends = {(each["from_point"], each["to_point"]) for each in local_result.links.to_pylist()}
    assert ends == {("near", "far"), ("java-cubic-loss-opening", "java-cubic-loss-data")}
    for name, table in local_result.named().items():
        assert spark_result.named()[name].equals(table), name
    outcomes = outcomes_of(tmp_path / "local")
    assert set(outcomes["basis"].to_pylist()) == {"inferred", "joined"}
    assert outcomes_of(tmp_path / "spark").equals(outcomes)


@pytest.mark.full
def test_a_file_that_cannot_be_split_is_read_whole(spark, tmp_path):
    path = tmp_path / "two.pcapng"
    path.write_bytes(2 * made.pcapng(made.stream_packets(600)))
    settings = ReadSettings(parts=3, cell_length=1 << 17)
    result = analyze_on_spark(spark, [str(path)], settings)
    assert result.captures["frames"].to_pylist() == [1_200]
    assert result.flows["first_frames"].to_pylist() == [600]


@pytest.mark.full
def test_sql_can_query_the_tables_of_an_analysis(spark, tmp_path):
    paths = [str(GOLDEN / "loss-reliable" / "capture.pcap.xz")]
    tables = reports.analyze(paths, messages=True, outcomes_dir=tmp_path / "outcomes")
    names = register(spark, tables, outcomes_dir=tmp_path / "outcomes")
    assert set(names) == {*tables.named(), "outcomes"}

    def query(text):
        return [tuple(row) for row in spark.sql(text).collect()]

    assert query("select outcome, count(*), sum(length) from gaps group by 1") == [
        ("repaired", 57, 74_848)
    ]
    assert query("select count(*), sum(length) from messages") == [(600, 1_208_900)]
    assert query("select outcome, count(*) from outcomes group by 1 order by 1") == [
        ("first", 1_205), ("resent", 68),
    ]  # fmt: skip
    for name in names:
        spark.catalog.dropTempView(name)


def test_spark_leaves_out_the_same_streams(spark, tmp_path):
    write_claims(tmp_path / "claims.pcap", FRAMES_OF)
    options = AnalysisOptions(max_streams=3)
    assert_is_limited(analyze([str(tmp_path / "claims.pcap")], options=options, spark=spark))


@pytest.mark.full
def test_spark_leaves_out_the_same_destinations(spark, tmp_path):
    paths = [str(path) for path in write_endpoints(tmp_path)]
    local_result, spark_result = (
        analyze(paths, options=replace(LIMITED, outcomes_dir=tmp_path / name), spark=session)
        for name, session in (("local", None), ("spark", spark))
    )
    assert spark_result.left_out == local_result.left_out != ()
    for name, table in local_result.named().items():
        assert getattr(spark_result, name).to_pylist() == table.to_pylist(), name
    assert outcomes_of(tmp_path / "spark").equals(outcomes_of(tmp_path / "local"))


@pytest.mark.full
def test_spark_tracks_the_same_gaps(spark, tmp_path):
    path = write_gaps(tmp_path / "gaps.pcap")
    local_result, spark_result = (
        analyze(
            [path],
            options=replace(test_claimed_gaps.LIMITED, outcomes_dir=tmp_path / name),
            spark=session,
        )
        for name, session in (("local", None), ("spark", spark))
    )
    assert spark_result.problems == local_result.problems != []
    for name, table in local_result.named().items():
        assert getattr(spark_result, name).to_pylist() == table.to_pylist(), name
    assert outcomes_of(tmp_path / "spark").equals(outcomes_of(tmp_path / "local"))


@pytest.mark.full
def test_spark_leaves_out_the_same_totals(spark, tmp_path):
    path = write_many(tmp_path / "many.pcap")
    local_result, spark_result = (
        analyze([path], options=test_claimed_terms.LIMITED, spark=session)
        for session in (None, spark)
    )
    assert spark_result.problems == local_result.problems != []
    for name, table in local_result.named().items():
        assert getattr(spark_result, name).to_pylist() == table.to_pylist(), name


@pytest.mark.full
def test_recordings_have_the_same_rows(spark, tmp_path):
    golden = unpack(tmp_path)
    for table, schema in TABLES.items():
        reader = (
            spark.read.format("aeron.recording").option("table", table).option("payload", "true")
        )
        result = reader.option("paths", json.dumps([str(golden)])).load().toArrow().cast(schema)
        assert result.to_pylist() == test_recording_tables.read(golden, table, payload="true")
        assert result.num_rows
    assert RECORDINGS.names[:2] == ["archive", "recording_id"]


@pytest.mark.full
def test_runs_and_log_buffers_have_the_same_rows(spark, tmp_path):
    path = test_run_tables.synthetic_run(tmp_path)
    log = tmp_path / "run-s1" / "hosts" / "a" / "logs" / "publications-4.logbuffer"
    log.parent.mkdir(parents=True)
    log.write_bytes(load("clean", "publication-4.logbuffer"))
    for source in SOURCES:
        schema, read = READERS[source.kind]
        source_path = log if source.kind == "logbuffer" else path
        expected = pa.Table.from_batches(read(source_path), schema=schema)
        option = json.dumps([str(path)])
        result = spark.read.format(source.name()).option("paths", option).load().toArrow()
        assert result.cast(schema).equals(expected)
        assert expected.num_rows


def test_both_engines_leave_out_the_figures_of_a_clock_that_steps_back(spark, tmp_path):
    for point, is_stepped in (("pub", True), ("sub", False)):
        packets = [
            each._replace(time_ns=each.time_ns - (index // 100) * is_stepped * 10**10)
            for index, each in enumerate(made.stream_packets(2_000))
            if point == "pub" or index % 50
        ]
        (tmp_path / f"{point}.pcap").write_bytes(made.pcap(packets))
    settings = ReadSettings(parts=4, cell_length=1 << 17)
    options = AnalysisOptions(outcomes_dir=tmp_path / "spark")
    spark_result = analyze_on_spark(spark, [str(tmp_path)], settings, options)
    local = analyze([str(tmp_path)], options=replace(options, outcomes_dir=tmp_path / "local"))
    assert local.captures["clock_steps"].to_pylist() == [19, 0]
    assert local.links.num_rows == 0
    for name, table in local.named().items():
        assert spark_result.named()[name].equals(table), name
    outcomes = outcomes_of(tmp_path / "local")
    assert 0 < outcomes["late_ns"].null_count < outcomes.num_rows
    assert outcomes_of(tmp_path / "spark").equals(outcomes)
