"""Samples of positions are those of a naive implementation, for events in any batches."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.reports.analysis.kernels import repair_kernel
from windtunnel.reports.analysis.kernels.frame_outcome_kernel import EVENT_OUTCOME
from windtunnel.reports.analysis.streams import positions
from windtunnel.reports.analysis.streams.positions import PositionSamples

EVENTS = st.lists(
    st.tuples(
        st.sampled_from([repair_kernel.FRAME, repair_kernel.STATUS]),
        st.integers(0, 1),
        st.integers(0, 50),
        st.integers(0, 50),
    ),
    max_size=70,
)


def naive(events, flow, most):
    """Make a row of each event of a flow, and drop every second one until few enough are left."""
    rows, consumed, limit = [], None, None
    for time_ns, (kind, of, start, end) in enumerate(events):
        if of != flow:
            continue
        if kind == repair_kernel.STATUS:
            consumed = max(start, start if consumed is None else consumed)
            limit = max(end, end if limit is None else limit)
        rows.append((time_ns, 2 * time_ns, 3 * time_ns, consumed, limit))
    step = 1
    while len(rows[::step]) > most:
        step *= 2
    kept = rows[::step]
    return kept if not rows or kept[-1] == rows[-1] else [*kept, rows[-1]]


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("most", [4, 1_000])
@given(EVENTS, st.lists(st.integers(1, 20), min_size=1, max_size=10))
@settings(max_examples=200)
def test_samples_equal_those_of_a_naive_implementation(most, events, lengths):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(positions, "SAMPLES_MAX", most)
        samples = [PositionSamples(), PositionSamples()]
        first, turn = 0, 0
        while first < len(events):
            part = events[first : first + lengths[turn % len(lengths)]]
            times = np.arange(first, first + len(part), dtype=np.int64)
            kinds, flows, starts, ends = np.array(part, dtype=np.int64).T
            outcomes = np.zeros(len(part), dtype=EVENT_OUTCOME)
            outcomes["high"], outcomes["rebuilt"] = 2 * times, 3 * times
            batch = SimpleNamespace(
                times_ns=times, kinds=kinds, flow_of=flows, starts=starts, ends=ends
            )
            for flow in range(2):
                samples[flow].feed(batch, outcomes, flow)
            first, turn = first + len(part), turn + 1
    for flow in range(2):
        assert [tuple(each.values()) for each in samples[flow].rows()] == naive(events, flow, most)
