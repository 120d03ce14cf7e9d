"""Figures of an archive's turns, and the causes of void readings, with a synthetic load."""

from types import SimpleNamespace

import pytest

from tests.unit.harness.bench.fake_archive import FakeLoads
from windtunnel.harness.artifact.run.bench_board import Command, Fault, State
from windtunnel.harness.bench import archive
from windtunnel.harness.bench.archive import Turn, message_count, values_of
from windtunnel.harness.bench.archive_host import OUR_ARCHIVE
from windtunnel.harness.bench.loads import MeasurementError
from windtunnel.harness.bench.plan import CASES, BenchSettings

CASE = next(case for case in CASES if case.name == "archive-1344")
COUNT = 762
"""Messages in a recording of 1 MiB, each of 1344 bytes and a header of 32."""


@pytest.fixture
def measure(tmp_path, monkeypatch):
    """Measure an archive whose load behaves as given to `FakeLoads`."""

    def made(*, alive_for=1_000, compiled=False, settings=None, **options):
        loads = FakeLoads(**options)
        monkeypatch.setattr(archive, "Loads", loads)
        monkeypatch.setattr(archive, "compiled_between", lambda *_: compiled)
        host = FakeHost(loads, tmp_path, alive_for)
        settings = settings or BenchSettings(
            recording_bytes=1 << 20, warm_up_s=0.0, seconds=0.0, term_length="1m"
        )
        return archive.measure_archive(CASE, host, settings, tmp_path, 2), loads

    return made


class FakeHost:
    """An archive that takes a microsecond of processor time a turn and ends after `alive_for`."""

    def __init__(self, loads, folder, alive_for):
        self.subject, self.directory, self.control_channel = OUR_ARCHIVE, folder, "there"
        self._loads, self._alive_for = loads, alive_for

    @property
    def is_alive(self):
        return len(self._loads.orders) <= self._alive_for

    def processor_ns(self):
        return 1_000 * len(self._loads.orders)


def test_rates_are_of_all_turns_together():
    turns = [Turn(1_000, 1_000_000_000, 5_000), Turn(3_000, 3_000_000_000, 11_000)]
    assert values_of(turns, 500) == {"messages": 1_000.0, "megabytes": 0.5, "processor": 4.0}


@pytest.mark.parametrize("turn", [Turn(0, 1, 1), Turn(1, 0, 1)], ids=["nothing", "no time"])
def test_turns_without_messages_or_time_have_no_rate(turn):
    with pytest.raises(MeasurementError, match="cannot compute a rate from"):
        values_of([turn], 32)


def test_a_recording_is_filled_with_whole_frames():
    assert message_count(CASE, BenchSettings(recording_bytes=1 << 20)) == COUNT
    assert message_count(CASE, BenchSettings(recording_bytes=1)) == 1


def test_recording_and_replay_have_their_own_figures(measure):
    made, loads = measure(record_ns=2_000_000_000, replay_ns=1_000_000_000)
    assert (made.driver, made.case, made.round_index, made.void) == ("ours", CASE.name, 2, "")
    assert made.values["record-messages"] == COUNT / 2
    assert made.values["replay-messages"] == COUNT
    assert made.values["replay-megabytes"] == COUNT * 1344 / 1e6
    assert made.values["record-processor"] == pytest.approx(1_000 / COUNT)
    assert loads.orders == [Command.RECORD, Command.REPLAY]
    more = loads.given["more"]
    assert more == ("--control-channel", "there", "--message-count", str(COUNT))
    assert loads.given["channels"] == ("aeron:ipc?term-length=1m", (), "")


def test_turns_of_the_warm_up_are_dropped(measure, monkeypatch):
    clock = iter([0.0, 0.0, 0.5, 1.5, 1.5, 2.0, 4.0])
    monkeypatch.setattr(archive, "time", SimpleNamespace(
        monotonic=lambda: next(clock), time_ns=lambda: 0
    ))  # fmt: skip
    settings = BenchSettings(recording_bytes=1 << 20, warm_up_s=1.0, seconds=2.0)
    made, loads = measure(settings=settings, slow_turns=4, slow_ns=10**12)
    # Two recordings and replays begin within the first second, the third and fourth count.
    assert loads.orders == [Command.RECORD, Command.REPLAY] * 4
    assert made.values["record-messages"] == COUNT * 1e3


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"lost_at": Command.REPLAY}, "REPLAY: expected 762 messages, counted 761"),
        ({"lost_at": Command.RECORD}, "RECORD: expected 762 messages, counted 761"),
        ({"fault": Fault.POSITION}, "archive: expected the recording to end at position 3, found"),
        ({"fault": Fault.REPLAYED}, "archive: expected 3 replayed messages, as recorded, found 4"),
        ({"alive_for": 1}, "the archive or its driver exited"),
        # Reported at once, not after the time limit of a recording.
        ({"alive_for": 0, "never": State.RECORDED}, "the archive or its driver exited"),
        ({"compiled": True}, "kernels were JIT-compiled"),
        ({"never": State.RECORDED}, "RECORD of 762 messages was not completed"),
        ({"never": State.CONNECTED}, "no archive responded"),
    ],
    ids=lambda value: None if isinstance(value, str) else str(next(iter(value.items()))),
)
def test_a_wrong_response_makes_the_reading_void(measure, options, why):
    made, _ = measure(**options)
    assert made.void.startswith(why)
    assert made.values == {}
