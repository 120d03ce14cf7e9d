"""Places where the times of a capture go back are found alike in any number of parts."""

import io
from dataclasses import astuple

from hypothesis import given
from hypothesis import strategies as st

from tests.naive.capture_clock import steps_back
from tests.stand_ins import synthetic_capture as made
from tests.stand_ins.synthetic_capture import START_NS, Packet
from windtunnel.harness.dissect.capture.capture_clock import CLOCK_STEP_NS, ClockSteps
from windtunnel.harness.dissect.capture.capture_stream import NO_STOP, CaptureStream, Reading

IP = made.ethernet(made.ipv4(made.udp(made.nak(64, 96))))
CELL = 4_096
"""Length of a cell: about 40 packets, and more than one packet behind the last chain."""
TIMES = st.one_of(
    st.none(),
    st.sampled_from([0, 1, CLOCK_STEP_NS - 1, CLOCK_STEP_NS, CLOCK_STEP_NS + 1]),
    st.integers(0, 3 * CLOCK_STEP_NS),
)


def capture_of(times_ns):
    """Return a capture of packets with these times, or with none, which exceeds a clock's range."""
    packets = [Packet(time_ns, IP, len(IP)) for time_ns in times_ns]
    return made.pcapng_head(options=made.option(9, b"\x09")) + made.pcapng_packets(
        packets, ticks=lambda time_ns: (1 << 64) - 1 if time_ns is None else time_ns
    )


def clock_of(capture, **settings):
    stream = CaptureStream(io.BytesIO(capture), Reading(**settings))
    for _ in stream.batches():
        pass
    return stream.clock, stream.counts["packets"]


def clock_in_parts(capture, length):
    clock, packets = ClockSteps(), 0
    for start in range(0, len(capture), length):
        stop = start + length if start + length < len(capture) else NO_STOP
        more, count = clock_of(capture, start=start, stop=stop, cell_length=CELL, is_split=True)
        clock, packets = clock.followed_by(more, packets), packets + count
    return clock


@given(st.lists(TIMES, max_size=20), st.integers(0, 90))
def test_steps_of_a_clock_equal_those_of_the_naive_search(times_ns, repeated):
    times_ns = times_ns * (1 + repeated // 20)
    capture = capture_of(times_ns)
    assert astuple(clock_of(capture)[0]) == steps_back(times_ns, CLOCK_STEP_NS)


@given(st.lists(TIMES, min_size=1, max_size=8), st.integers(100, 200), st.integers(1, 3))
def test_steps_of_a_clock_do_not_depend_on_the_parts(times_ns, count, cells):
    times_ns = (times_ns * count)[:count]
    capture = capture_of(times_ns)
    found = clock_in_parts(capture, cells * CELL)
    assert astuple(found) == steps_back(times_ns, CLOCK_STEP_NS)


def test_a_step_between_any_two_packets_is_found_in_any_number_of_parts():
    for at in range(1, 60):
        times_ns = [(index - (index >= at)) * CLOCK_STEP_NS for index in range(60)]
        times_ns[at] -= CLOCK_STEP_NS
        capture = capture_of([START_NS + each for each in times_ns])
        found = clock_in_parts(capture, CELL)
        assert (found.clock_steps, found.clock_step_packet) == (1, at + 1)
        assert found.clock_step_ns == CLOCK_STEP_NS
