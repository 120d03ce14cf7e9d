"""Runs that differ only in times are distinguished from runs with other differences."""

import numpy as np
import pytest

from tests.unit.harness.exam.test_evidence_difference import rewrite_simulation, written
from tests.unit.harness.verdict.synthetic_run import TRAFFIC, nak
from windtunnel.harness.artifact.host.counter_sample import COUNTER_SAMPLE
from windtunnel.harness.artifact.records import write_records
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.driver_files.loss_report import ENTRY
from windtunnel.harness.exam.evidence_difference import differences
from windtunnel.harness.exam.shifted_evidence import SHIFT_MAX_NS, largest_shift_ns

SHIFT_NS = 20_000


def shift(tmp_path, change=lambda run: None, after=lambda run: None):
    sound, other = written(tmp_path / "sound"), written(tmp_path / "other", change)
    after(other)
    return largest_shift_ns(sound.folder, other.folder)


def test_flows_may_overtake_each_other(tmp_path):
    def change(run):
        packets = run.packets["a"]
        at = next(i for i in range(5, 99) if packets[i].source != packets[i + 1].source)
        first, second = packets[at : at + 2]
        first.time_ns = second.time_ns + 1
        packets[at : at + 2] = second, first

    assert shift(tmp_path, change) > 0


def test_equal_runs_have_no_shift(tmp_path):
    assert shift(tmp_path) == 0


def a_packet_is_later(run):
    run.packets["a"][5].time_ns += SHIFT_NS


def a_frame_is_read_later(run):
    run.seen_ns[3] += SHIFT_NS


@pytest.mark.parametrize("change", [a_packet_is_later, a_frame_is_read_later])
def test_a_later_event_is_a_shift(change, tmp_path):
    assert shift(tmp_path, change) == SHIFT_NS


def an_extra_nak(run):
    run.send("b", nak(0, 64), "NAK")


def a_message_is_missing(run):
    run.messages.pop()


def a_byte_of_a_log(run):
    run.logs["b"][100] ^= 1


def a_final_value(run):
    run.values["a/7"] = run.values.get("a/7", 0) + 1


def a_packet_of_a_flow_is_missing(run):
    del run.packets["a"][5]


def packets_of_a_flow_change_places(run):
    packets = run.packets["a"]
    later = next(i for i in range(6, len(packets)) if packets[i].source == packets[5].source)
    packets[5], packets[later] = packets[later], packets[5]
    times_ns = packets[5].time_ns, packets[later].time_ns
    packets[later].time_ns, packets[5].time_ns = times_ns


@pytest.mark.parametrize(
    "change",
    [
        an_extra_nak,
        a_message_is_missing,
        a_byte_of_a_log,
        a_final_value,
        a_packet_of_a_flow_is_missing,
        packets_of_a_flow_change_places,
    ],
)
def test_anything_else_is_not_a_shift(change, tmp_path):
    assert shift(tmp_path, change) is None


def test_an_exit_code_is_not_a_shift(tmp_path):
    assert shift(tmp_path, after=rewrite_simulation(exits=[])) is None


@pytest.mark.parametrize(("later_ms", "expected"), [(0, 0), (1, 0), (2, 2_000_000)])
def test_times_of_the_loss_report_have_a_resolution(later_ms, expected, tmp_path):
    def report(run, row):
        entry = np.zeros(128, dtype=np.uint8)
        entry[: ENTRY.itemsize] = np.array([row], dtype=ENTRY).view(np.uint8)
        run.folder.host("b").loss_report.write_bytes(entry.tobytes())

    sound, other = written(tmp_path / "sound"), written(tmp_path / "other")
    report(sound, (1, 64, 5, 5, 7, 1001))
    report(other, (1, 64, 5, 5 + later_ms, 7, 1001))
    assert largest_shift_ns(sound.folder, other.folder) == expected
    report(other, (1, 96, 5, 5, 7, 1001))
    assert largest_shift_ns(sound.folder, other.folder) is None


def test_times_of_messages_are_compared(tmp_path):
    sound, other = written(tmp_path / "sound"), written(tmp_path / "other")
    times_ns = np.arange(len(sound.messages), dtype="<i8")
    for run, later_ns in ((sound, 0), (other, 7)):
        write_records(run.folder.host("b").subscriber(TRAFFIC).times, times_ns + later_ns)
    assert largest_shift_ns(sound.folder, other.folder) == 7


def samples_of(run):
    """Return the index of a sample whose counter has an earlier and a later one."""
    rows = run.samples["b"]
    keys = [name for _, name, _ in rows]
    return next(i for i, key in enumerate(keys) if key in keys[:i] and key in keys[i + 1 :])


def test_a_value_between_its_neighbours_is_a_shift(tmp_path):
    def change(run):
        at = samples_of(run)
        *start, value = run.samples["b"][at]
        run.samples["b"][at] = (*start, value - 1)

    assert shift(tmp_path, change) == 0


@pytest.mark.parametrize(("more", "expected"), [(SHIFT_MAX_NS, 0), (SHIFT_MAX_NS + 1, None)])
def test_a_duration_may_be_as_much_longer_as_times_are_shifted(tmp_path, more, expected):
    def oldest_gap(run, value):
        row = np.array([(1, 9, counter_key.OLDEST_GAP, 6, value)], dtype=COUNTER_SAMPLE)
        write_records(run.folder.host("b").counter_samples, row)

    sound, other = written(tmp_path / "sound"), written(tmp_path / "other")
    oldest_gap(sound, 5_000)
    oldest_gap(other, 5_000 + more)
    assert largest_shift_ns(sound.folder, other.folder) == expected


def test_a_value_that_the_other_run_never_has_is_not_a_shift(tmp_path):
    def change(run):
        at = samples_of(run)
        *start, value = run.samples["b"][at]
        run.samples["b"][at] = (*start, value + (1 << 40))

    assert shift(tmp_path, change) is None


@pytest.mark.parametrize(("shift_ns", "noted"), [(SHIFT_MAX_NS, True), (SHIFT_MAX_NS + 1, False)])
def test_only_a_short_shift_is_noted(shift_ns, noted, tmp_path):
    def change(run):
        run.packets["a"][-1].time_ns += shift_ns

    sound, other = written(tmp_path / "sound"), written(tmp_path / "other", change)
    (found,) = differences(sound.folder, other.folder)
    assert found.shift_ns == (shift_ns if noted else None)
