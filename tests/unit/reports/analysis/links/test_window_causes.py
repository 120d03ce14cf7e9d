"""A sender waits for a status message: the first that opened the window was lost, or was sent late.

ms     0      2             3     50     102   103
near   SETUP  f0 ... f7                  SM    f8
far                         SM x  SM x   SM
"""

import pytest

from tests.stand_ins import synthetic_capture as made
from tests.stand_ins.synthetic_capture import START_NS, packet
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.output.summary import summary_lines

MS, WAY_NS = 1_000_000, 40_000


def captures(folder, sent_ms, arrived_ms, naks_ms=()):
    """Write the captures of both hosts: status messages are sent at some times, and some arrive.
    NAKs are sent and do not arrive.
    """
    sent = [(0, made.setup()), *((2, made.data(offset, b"")) for offset in range(0, 256, 32))]
    sent.append((103, made.data(256, b"")))
    control = [(1, made.sm(0, 256)), *((at_ms, made.sm(256, 256)) for at_ms in sent_ms)]
    control += [(at_ms, made.nak(224, 32)) for at_ms in naks_ms]
    for name, there_ns, shown in (("near", 0, (1, *arrived_ms)), ("far", WAY_NS, None)):
        packets = [packet(START_NS + at_ms * MS + there_ns, frame) for at_ms, frame in sent]
        packets += [
            packet(
                START_NS + at_ms * MS - there_ns, frame, source=made.B, destination=made.A,
                ports=(24_325, 40_000),
            )
            for at_ms, frame in control
            if shown is None or at_ms in shown
        ]  # fmt: skip
        packets.sort(key=lambda each: each.time_ns)
        (folder / f"{name}.pcap").write_bytes(made.pcap(packets))
    return analyze([str(folder)])


@pytest.mark.parametrize(
    ("sent_ms", "cause"), [((3, 50, 102), "feedback"), ((80, 102), "receiver")]
)
def test_the_cause_of_a_stall_is_feedback_if_the_status_message_that_opened_the_window_was_lost(
    tmp_path, sent_ms, cause
):
    tables = captures(tmp_path, sent_ms, (102,))
    stalls = {(row["vantage_point"], row["cause"]) for row in tables.stalls.to_pylist()}
    assert ("near", cause) in stalls
    assert (("far", "receiver") in stalls) == (cause == "receiver")
    (_, near, link, _) = summary_lines(tables)
    reason = ", 1 of them because status messages were lost"
    assert near.endswith(f"1 flow control stall, up to 100 ms{reason * (cause == 'feedback')}")
    lost, sent = len(sent_ms) - 1, len(sent_ms) + 1
    statuses = "status message" if lost == 1 else "status messages"
    assert f"lost {lost} {statuses} and 0 NAKs of {sent} in the other direction" in link


def test_the_cause_of_a_stall_is_the_receiver_if_no_status_message_was_lost(tmp_path):
    tables = captures(tmp_path, (102,), (102,))
    assert {row["cause"] for row in tables.stalls.to_pylist()} == {"receiver"}
    assert "status messages" not in "".join(summary_lines(tables))


def test_lost_naks_are_not_the_cause_of_a_stall(tmp_path):
    tables = captures(tmp_path, (102,), (102,), naks_ms=(3, 50))
    assert {row["cause"] for row in tables.stalls.to_pylist()} == {"receiver"}
    (_, _, link, _) = summary_lines(tables)
    assert "lost 0 status messages and 2 NAKs of 4 in the other direction" in link


@pytest.mark.parametrize(
    ("lost_consumed", "cause"), [(None, "window"), (0, "window"), (32, "feedback")]
)
def test_a_window_that_is_used_up_within_a_round_trip_stalls_the_sender(
    tmp_path, lost_consumed, cause
):
    """Frame 8 needs a limit of 288. A lost status message sets one of 256 or 288.

    ms     2 near         12 far   13 far    22 near
           f0 ... f7      SM -->   (SM x)    SM  f8
    """
    forward = [(0, made.setup()), *((2, made.data(offset, b"")) for offset in range(0, 256, 32))]
    forward.append((24, made.data(256, b"")))
    packets = {"near": [], "far": []}
    for at_ms, frame in forward:
        for name, way_ms in (("near", 0), ("far", 10)):
            packets[name].append(packet(START_NS + (at_ms + way_ms) * MS, frame))
    control = [(1, made.sm(0, 256), True), (12, made.sm(256, 256), True)]
    if lost_consumed is not None:
        control.append((11, made.sm(lost_consumed, 256), False))
    for at_ms, frame, has_arrived in control:
        for name, way_ms in (("near", 10), ("far", 0)):
            if name == "far" or has_arrived:
                time_ns = START_NS + (at_ms + way_ms) * MS
                ports = (24_325, 40_000)
                packets[name].append(
                    packet(time_ns, frame, source=made.B, destination=made.A, ports=ports)
                )
    for name, found in packets.items():
        found.sort(key=lambda each: each.time_ns)
        (tmp_path / f"{name}.pcap").write_bytes(made.pcap(found))
    tables = analyze([str(tmp_path)])
    (stall,) = tables.stalls.to_pylist()
    assert (stall["vantage_point"], stall["cause"]) == ("near", cause)
    assert (stall["needed_limit"], stall["opened_limit"]) == (288, 512)
    reason = {
        "window": "because the window was used up within a round trip",
        "feedback": "because status messages were lost",
    }[cause]
    assert summary_lines(tables)[1].endswith(f"up to 20 ms, 1 of them {reason}")
