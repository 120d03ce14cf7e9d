"""The time from refused offers to the next offers, by result."""

from windtunnel.harness.workload.refused_time import RefusedTime

BACK_PRESSURED, NOT_CONNECTED = -2, -1


def test_each_refusal_counts_until_the_next_offer():
    times_ns = iter([10, 15, 40, 45, 100])
    refused = RefusedTime(lambda: next(times_ns))
    for code in (64, BACK_PRESSURED, NOT_CONNECTED, NOT_CONNECTED, 128, 192, BACK_PRESSURED):
        refused.note(code)
    assert refused.of(BACK_PRESSURED) == 15 - 10
    assert refused.of(NOT_CONNECTED) == 45 - 15


def test_accepted_offers_do_not_read_the_clock():
    refused = RefusedTime(lambda: 1 // 0)
    refused.note(64)
    assert refused.of(BACK_PRESSURED) == 0
