"""Each kind of evidence that differs between two runs is found, with its time and place."""

import numpy as np
import pytest

from tests.unit.harness.verdict.synthetic_run import TRAFFIC, make_run, nak
from windtunnel.harness.artifact.host.host_facts import ErrorObservation, write_error_log
from windtunnel.harness.artifact.records import write_records
from windtunnel.harness.artifact.run.manifest import ProcessExit
from windtunnel.harness.artifact.run.simulation import Simulation
from windtunnel.harness.dissect.driver_files.loss_report import ENTRY
from windtunnel.harness.exam.evidence_difference import differences

COUNTER = "b/rcv-pos"


def written(folder, change=lambda run: None):
    run = make_run(folder)
    change(run)
    run.write()
    start_ns = run.manifest.phases[0].started_ns
    exits = [ProcessExit("a/driver", "driver", 0, True, "", "")]
    Simulation("00", 1, 1, 1, traffic_started_ns=start_ns, exits=exits).write(run.folder.simulation)
    return run


def found(tmp_path, change=lambda run: None, after=lambda run: None):
    sound, other = written(tmp_path / "sound"), written(tmp_path / "other", change)
    after(other)
    return differences(sound.folder, other.folder)


def test_equal_runs_do_not_differ(tmp_path):
    assert found(tmp_path) == []


def a_packet_is_later(run):
    run.packets["a"][5].time_ns += 1


def an_extra_nak_at_the_end(run):
    run.send("b", nak(0, 64), "NAK")


def a_frame_is_read_later(run):
    run.seen_ns[3] += 1


def a_message_is_missing(run):
    run.messages.pop()


def a_byte_of_a_log(run):
    run.logs["b"][100] ^= 1


def a_byte_of_a_message(run):
    position, data = run.messages[2]
    run.messages[2] = position, bytes([data[0] ^ 1]) + data[1:]


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        (a_packet_is_later, ["datagrams"]),
        (a_frame_is_read_later, ["frames read"]),
        (a_message_is_missing, ["deliveries", "applications", "messages"]),
        (a_byte_of_a_log, ["log buffers"]),
        (a_byte_of_a_message, ["messages"]),
    ],
)
def test_a_change_of_one_kind_is_found(change, kinds, tmp_path):
    assert [each.kind for each in found(tmp_path, change)] == kinds


def test_a_packet_has_its_time_and_both_contents(tmp_path):
    sound = written(tmp_path / "sound")
    other = written(tmp_path / "other", an_extra_nak_at_the_end)
    first = differences(sound.folder, other.folder)[0]
    assert first.kind == "datagrams"
    assert first.place == "host b"
    assert first.sound == "no packet"
    assert "NAK" in first.found
    assert "term_offset 0, length 64" in first.found
    last_ns = max(each.time_ns for each in other.packets["b"])
    assert first.time_ns == last_ns - other.manifest.phases[0].started_ns


def test_the_earliest_difference_is_first(tmp_path):
    def change(run):
        an_extra_nak_at_the_end(run)
        a_frame_is_read_later(run)
        a_byte_of_a_log(run)

    times_ns = [each.time_ns for each in found(tmp_path, change)]
    assert times_ns[0] < times_ns[1]
    assert times_ns[-1] is None


def test_a_counter_sample_has_its_label_and_value(tmp_path):
    def change(run):
        (*start, value) = run.samples["b"][-1]
        run.samples["b"][-1] = (*start, value + 32)

    (first,) = found(tmp_path, change)
    assert first.kind == "counter"
    assert first.place == "host b"
    assert " = " in first.found
    assert first.sound.rsplit(" ", 1)[0] == first.found.rsplit(" ", 1)[0]


def test_a_final_value_counts_although_no_sample_differs(tmp_path):
    def change(run):
        run.values["a/7"] = run.values.get("a/7", 0) + 1

    (first,) = found(tmp_path, change)
    assert first.kind == "final counter"
    assert first.time_ns is None
    assert first.found.startswith("system 7 = 1")


def rewrite_simulation(**changes):
    def after(run):
        facts = {"exits": [ProcessExit("a/driver", "driver", 0, True, "", "")], **changes}
        Simulation("00", 1, 1, 1, **facts).write(run.folder.simulation)

    return after


def test_an_exit_code_counts(tmp_path):
    exits = [ProcessExit("a/driver", "driver", 1, True, "", "an error")]
    (first,) = found(tmp_path, after=rewrite_simulation(exits=exits))
    assert (first.kind, first.place) == ("ends of processes", "a/driver")
    assert first.found == "exit code 1 an error"


def test_an_error_log_counts(tmp_path):
    def after(run):
        write_error_log(run.folder.host("a").cnc_errors, [ErrorObservation(1, 1, 2, "bad frame")])

    (first,) = found(tmp_path, after=after)
    assert (first.kind, first.sound) == ("errors", "nothing")
    assert "bad frame" in first.found


def test_a_loss_report_counts(tmp_path):
    def after(run, bytes_lost):
        entry = np.zeros(128, dtype=np.uint8)
        entry[: ENTRY.itemsize] = np.array([(1, bytes_lost, 1, 1, 7, 1001)], dtype=ENTRY).view(
            np.uint8
        )
        run.folder.host("b").loss_report.write_bytes(entry.tobytes())

    sound, other = written(tmp_path / "sound"), written(tmp_path / "other")
    other.folder.host("b").loss_report.write_bytes(b"")
    after(sound, 64)
    (missing,) = differences(sound.folder, other.folder)
    assert (missing.kind, missing.place, missing.found) == ("loss report", "host b", "nothing")
    after(other, 64)
    assert differences(sound.folder, other.folder) == []
    after(other, 128)
    (first,) = differences(sound.folder, other.folder)
    assert "bytes_lost=128" in first.found


def test_a_digest_shows_differences_between_samples(tmp_path):
    def after(run):
        Simulation("01", 1, 2, 1, exits=[ProcessExit("a/driver", "driver", 0, True, "", "")]).write(
            run.folder.simulation
        )

    (first,) = found(tmp_path, after=after)
    assert first.kind == "digest"


def test_times_of_messages_count(tmp_path):
    def after(run, later):
        count = len(run.messages)
        times_ns = np.arange(count, dtype="<i8") + later
        write_records(run.folder.host("b").subscriber(TRAFFIC).times, times_ns)

    sound, other = written(tmp_path / "sound"), written(tmp_path / "other")
    after(sound, 100)
    after(other, 100)
    assert differences(sound.folder, other.folder) == []
    after(other, 101)
    (first,) = differences(sound.folder, other.folder)
    assert first.kind == "deliveries"
    assert first.sound.endswith("at 100 ns")
    assert first.found.endswith("at 101 ns")


def test_damaged_captures_are_described_and_not_followed(tmp_path):
    def after(run):
        capture = run.folder.capture("a")
        capture.write_bytes(capture.read_bytes()[:-3])

    (first,) = found(tmp_path, after=after)
    assert (first.kind, first.found) == ("datagrams", "no packet")
