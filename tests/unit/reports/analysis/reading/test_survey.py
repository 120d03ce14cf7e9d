"""A survey of any number of parts has the same totals as reading all frames."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.stand_ins import synthetic_capture as made
from windtunnel.reports.analysis.engines.local.local_engine import local_frames
from windtunnel.reports.analysis.reading import survey
from windtunnel.reports.analysis.reading.capture_files import find_captures
from windtunnel.reports.analysis.reading.parts import PartReader, ReadSettings, plan, sum_captures
from windtunnel.reports.analysis.reading.survey import SURVEY, TotalsSum, survey_of, unpack_survey
from windtunnel.reports.analysis.reading.totals import TOTALS, totals_of

KEYS = [(name, "ascending") for name in TOTALS.names]


def surveyed(paths, settings):
    parts = plan(find_captures([str(path) for path in paths]), settings)
    rows = [survey_of(PartReader(part, settings)) for part in parts]
    table = pa.Table.from_batches(rows, schema=SURVEY)
    return unpack_survey(table, settings.totals_max), len(parts)


def whole_totals(path):
    """Return a capture that was read as one batch, and its totals."""
    whole = local_frames(find_captures([str(path)]), ReadSettings())
    frames = pa.Table.from_batches(whole.batches()).combine_chunks()
    return whole, totals_of(frames.to_batches()[0])


@pytest.mark.parametrize("parts", [0, 3])
def test_the_sum_of_all_parts_equals_the_totals_of_the_whole_capture(parts, tmp_path):
    path = tmp_path / "long.pcap"
    packets = made.stream_packets(2_000) + made.stream_packets(500, session=-5)
    path.write_bytes(made.pcap(packets))
    settings = ReadSettings(parts=parts, cell_length=1 << 17)
    (captures, sums), count = surveyed([path], settings)
    assert (count > 1) == (parts > 1)
    whole, expected = whole_totals(path)
    assert sums.table().sort_by(KEYS) == expected.sort_by(KEYS)
    assert sums.left_out == 0
    assert sum_captures(captures) == whole.captures


def test_a_file_that_cannot_be_read_is_reported_and_has_no_totals(tmp_path):
    path = tmp_path / "noise.pcap"
    path.write_bytes(b"noise" * 100)
    (captures, sums), _ = surveyed([path], ReadSettings())
    assert sums.table().num_rows == 0
    assert captures["problem"].to_pylist() != [""]


def write_sessions(path, count):
    """Write a capture with streams that have SETUP and DATA frames, in descending order of ids."""
    packets = []
    for number in range(count):
        stream = made.stream_packets(4, session=-number)
        packets += [made.packet(made.START_NS + number, made.setup(session=-number)), *stream]
    path.write_bytes(made.pcap(packets))


@pytest.mark.parametrize("parts", [0, 3])
def test_the_first_totals_are_kept_whatever_the_parts_are(parts, monkeypatch, tmp_path):
    monkeypatch.setattr(survey, "TOTALS_PENDING_MIN", 5)
    path = tmp_path / "many.pcap"
    write_sessions(path, 800)
    _, expected = whole_totals(path)
    first = expected.sort_by(survey._ORDER).slice(0, 33)
    settings = ReadSettings(parts=parts, cell_length=1 << 17, totals_max=33)
    (_, sums), count = surveyed([path], settings)
    assert (count > 1) == (parts > 1)
    assert sums.table().sort_by(KEYS) == first.sort_by(KEYS)
    assert sums.left_out == pc.sum(expected["frames"]).as_py() - pc.sum(first["frames"]).as_py()


def test_pending_totals_are_merged_before_there_are_many(monkeypatch, tmp_path):
    monkeypatch.setattr(survey, "TOTALS_PENDING_MIN", 5)
    path = tmp_path / "short.pcap"
    path.write_bytes(made.pcap(made.stream_packets(50)))
    batches = list(local_frames(find_captures([str(path)]), ReadSettings()).batches())
    total = TotalsSum()
    for _ in range(20):
        for batch in batches:
            total.add(totals_of(batch))
            assert total._count <= max(5, total._totals.num_rows // 2)
    assert sum(total.table()["frames"].to_pylist()) == 20 * sum(each.num_rows for each in batches)
