"""A capture may have a gap before each frame. The number of gaps is limited."""

from tests.stand_ins import synthetic_capture as made
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.options import AnalysisOptions

LIMITED = AnalysisOptions(max_gaps=140)
TRACKED, GAPS = 70, 99


def write_gaps(path, frames=GAPS + 1, sessions=(77, 78)):
    """Write a capture in which each second frame of each stream is missing."""
    packets = []
    for session in sessions:
        setup = made.setup(session=session, term_length=1 << 30)
        packets.append(made.packet(made.START_NS, setup))
        for number in range(frames):
            time_ns = made.START_NS + 1_000 * (number + 1)
            packets.append(made.packet(time_ns, made.data(64 * number, session=session)))
    path.write_bytes(made.pcap(packets))
    return str(path)


def test_gaps_beyond_the_limit_are_left_out_and_reported(tmp_path):
    tables = analyze([write_gaps(tmp_path / "gaps.pcap")], options=LIMITED)
    assert tables.gaps["session_id"].to_pylist() == [77] * TRACKED + [78] * TRACKED
    assert tables.gaps["position"].to_pylist() == [32 + 64 * each for each in range(TRACKED)] * 2
    assert tables.flows["first_frames"].to_pylist() == [GAPS + 1] * 2
    assert tables.problems == [
        f"stream 1001 session {session}: found more than {TRACKED} gaps: later ones were not "
        "tracked; raise the limit with --max-gaps"
        for session in (77, 78)
    ]


def test_as_many_gaps_as_expected_are_no_problem(tmp_path):
    path = write_gaps(tmp_path / "gaps.pcap")
    tables = analyze([path], options=AnalysisOptions(max_gaps=2 * GAPS))
    assert tables.gaps.num_rows == 2 * GAPS
    assert tables.problems == []


def test_each_stream_may_have_some_gaps(tmp_path):
    path = write_gaps(tmp_path / "gaps.pcap", frames=40, sessions=range(70, 80))
    tables = analyze([path], options=AnalysisOptions(max_gaps=100))
    assert tables.gaps.num_rows == 390
    assert tables.problems == []
