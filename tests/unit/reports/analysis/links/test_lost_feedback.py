"""A sender waits for a status message: the first one that made room was lost, or is late itself.

ms     0      2             3     50     102   103
near   SETUP  f0 ... f7                  SM    f8
far                         SM x  SM x   SM
"""

import pytest

from tests.stand_ins import made_capture as made
from tests.stand_ins.made_capture import START_NS, packet
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.output.summary import summary_lines

MS, WAY_NS = 1_000_000, 40_000


def captures(folder, messages_ms, arrived_ms):
    """Write the captures of both hosts: status messages leave at some times, and some arrive."""
    sent = [(0, made.setup()), *((2, made.data(offset, b"")) for offset in range(0, 256, 32))]
    sent.append((103, made.data(256, b"")))
    back = [(1, made.sm(0, 256)), *((at_ms, made.sm(256, 256)) for at_ms in messages_ms)]
    for name, there_ns, shown in (("near", 0, (1, *arrived_ms)), ("far", WAY_NS, None)):
        packets = [packet(START_NS + at_ms * MS + there_ns, frame) for at_ms, frame in sent]
        packets += [
            packet(
                START_NS + at_ms * MS - there_ns, frame, source=made.B, destination=made.A,
                ports=(24_325, 40_000),
            )
            for at_ms, frame in back
            if shown is None or at_ms in shown
        ]  # fmt: skip
        packets.sort(key=lambda each: each.time_ns)
        (folder / f"{name}.pcap").write_bytes(made.pcap(packets))
    return analyze([str(folder)])


@pytest.mark.parametrize(
    ("messages_ms", "cause"), [((3, 50, 102), "feedback"), ((80, 102), "receiver")]
)
def test_a_stall_is_the_links_if_the_status_message_that_made_room_was_lost(
    tmp_path, messages_ms, cause
):
    tables = captures(tmp_path, messages_ms, (102,))
    stalls = {(row["vantage_point"], row["cause"]) for row in tables.stalls.to_pylist()}
    assert ("near", cause) in stalls
    assert (("far", "receiver") in stalls) == (cause == "receiver")
    (_, near, link, _) = summary_lines(tables)
    reason = ", 1 of them because status messages were lost"
    assert near.endswith(f"1 flow control stall, up to 100 ms{reason * (cause == 'feedback')}")
    lost, sent = len(messages_ms) - 1, len(messages_ms) + 1
    assert f"lost {lost} of {sent} status messages and NAKs in the other direction" in link


def test_a_slow_receiver_is_blamed_if_no_status_message_was_lost(tmp_path):
    tables = captures(tmp_path, (102,), (102,))
    assert {row["cause"] for row in tables.stalls.to_pylist()} == {"receiver"}
    assert "status messages" not in "".join(summary_lines(tables))
