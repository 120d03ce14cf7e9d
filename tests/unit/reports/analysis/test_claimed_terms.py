"""A capture may have a new term or source in each frame. Their number is limited."""

from tests.stand_ins import synthetic_capture as made
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.options import AnalysisOptions

LIMITED = AnalysisOptions(max_totals=10)


def write_many(path):
    """Write streams with a frame in each of six terms."""
    packets = []
    for session in (79, 77, 78):
        packets.append(made.packet(made.START_NS, made.setup(session=session)))
        for number in range(6):
            payload = made.data(0, b"payload", session=session, term=7 + number)
            packets.append(made.packet(made.START_NS + 1 + number, payload))
    path.write_bytes(made.pcap(packets))
    return str(path)


def test_totals_beyond_the_limit_are_left_out_and_reported(tmp_path):
    tables = analyze([write_many(tmp_path / "many.pcap")], options=LIMITED)
    found = tables.streams.select(["session_id", "setups", "data_frames"]).to_pylist()
    assert [tuple(row.values()) for row in found] == [(77, 1, 6), (78, 1, 2)]
    assert tables.flows["first_frames"].to_pylist() == [6, 6]
    assert tables.problems == [
        "found more than 10 combinations of stream, capture point, addresses, frame type and term: "
        "11 frames of the streams with the highest ids are not in the table of streams; raise the "
        "limit with --max-totals, analyse fewer files at a time, or only the UDP ports of interest"
    ]


def test_as_many_totals_as_expected_are_no_problem(tmp_path):
    path = write_many(tmp_path / "many.pcap")
    tables = analyze([path], options=AnalysisOptions(max_totals=21))
    assert tables.streams["data_frames"].to_pylist() == [6, 6, 6]
    assert tables.problems == []
