"""A survey tells the same as reading all frames, from however many parts it comes."""

import pyarrow as pa
import pytest

from tests.stand_ins import made_capture as made
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
    return unpack_survey(pa.Table.from_batches(rows, schema=SURVEY)), len(parts)


@pytest.mark.parametrize("parts", [0, 3])
def test_all_parts_together_tell_what_a_whole_reading_tells(parts, tmp_path):
    path = tmp_path / "long.pcap"
    packets = made.stream_packets(2_000) + made.stream_packets(500, session=-5)
    path.write_bytes(made.pcap(packets))
    settings = ReadSettings(parts=parts, cell_length=1 << 17)
    (captures, totals), count = surveyed([path], settings)
    assert (count > 1) == (parts > 1)
    whole = local_frames(find_captures([str(path)]), ReadSettings())
    expected = totals_of(pa.Table.from_batches(whole.batches()).combine_chunks().to_batches()[0])
    assert totals.sort_by(KEYS) == expected.sort_by(KEYS)
    assert sum_captures(captures) == whole.captures


def test_a_file_that_cannot_be_read_is_told_and_has_no_totals(tmp_path):
    path = tmp_path / "noise.pcap"
    path.write_bytes(b"noise" * 100)
    (captures, totals), _ = surveyed([path], ReadSettings())
    assert totals.num_rows == 0
    assert captures["problem"].to_pylist() != [""]


def test_sums_are_added_up_before_there_are_many(monkeypatch, tmp_path):
    monkeypatch.setattr(survey, "TOTALS_PENDING_MAX", 5)
    path = tmp_path / "short.pcap"
    path.write_bytes(made.pcap(made.stream_packets(50)))
    batches = list(local_frames(find_captures([str(path)]), ReadSettings()).batches())
    total = TotalsSum()
    for _ in range(20):
        for batch in batches:
            total.add(totals_of(batch))
            assert len(total._pending) <= 5
    assert sum(total.table()["frames"].to_pylist()) == 20 * sum(each.num_rows for each in batches)
