"""Publisher and subscriber through our driver over loopback, compared with the judge's plan."""

import struct
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from tests.unit.harness.workload.small_case import LONGEST, MTU, SEED, TERM_LENGTH, small_case
from windtunnel.driver.base.atomics import get_i32
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.media_driver.context import SHARED, Context
from windtunnel.driver.media_driver.media_driver import MediaDriver
from windtunnel.harness.artifact.host.application import PublisherFacts, SubscriberFacts
from windtunnel.harness.artifact.host.delivery import read_deliveries
from windtunnel.harness.artifact.host.frame_seen import headers, read_frames_seen
from windtunnel.harness.artifact.host.offer import read_offers
from windtunnel.harness.artifact.run.plan import message_bytes, plan
from windtunnel.harness.artifact.run_dir import HostDir
from windtunnel.harness.dissect.driver_files.cnc_file import map_cnc
from windtunnel.harness.dissect.driver_files.counter_key import (
    RECEIVER_NAKS_SENT,
    SUBSCRIBER_POSITION,
)
from windtunnel.harness.dissect.driver_files.expected_log import expected_log
from windtunnel.harness.workload import __main__ as entry
from windtunnel.harness.workload import publisher, saboteur, subscriber
from windtunnel.harness.workload.options import Options
from windtunnel.harness.workload.stop import GaveUp, Stop, Stopped, SubjectError


def make_driver(folder):
    context = Context(
        dir=folder / "aeron", threading_mode=SHARED, shared_idle_strategy="sleep-ns",
        shared_idle_init_args="50us",
    )  # fmt: skip
    return MediaDriver(context)


@pytest.fixture
def driver(tmp_path):
    with make_driver(tmp_path) as running:
        yield running


def options_of(case, role, driver, folder, sabotage=""):
    directory = driver.context.dir
    return Options(role, case, case.traffic[0], directory, HostDir(folder / role), sabotage)


class RunningWorkload:
    """A workload on its own thread, and its result."""

    def __init__(self, run, chosen):
        self.stop, self.error = Stop(), None
        self._thread = threading.Thread(target=self._work, args=(run, chosen))
        self._thread.start()

    def _work(self, run, chosen):
        try:
            run(chosen, self.stop)
        except (Stopped, SubjectError) as error:
            self.error = error

    def end(self):
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.error


def planned(case):
    traffic = case.traffic[0]
    made = plan(SEED, "one", traffic.total_bytes, LONGEST, 1)
    payload = np.fromfile(case.payload.path, dtype=np.uint8)
    pairs = zip(made.starts.tolist(), made.lengths.tolist(), strict=True)
    return made, [message_bytes(payload, start, length).tobytes() for start, length in pairs]


def run_both(case, driver, folder, *, publish="", subscribe=""):
    reading = RunningWorkload(
        subscriber.run, options_of(case, "subscriber", driver, folder, subscribe)
    )
    chosen = options_of(case, "publisher", driver, folder, publish)
    writing = RunningWorkload(publisher.run, chosen)
    assert writing.end() is None
    assert reading.end() is None
    own = HostDir(folder / "subscriber").subscriber("one")
    return SimpleNamespace(
        published=PublisherFacts.read(chosen.files.publisher("one").document),
        offers=read_offers(chosen.files.publisher("one").offers),
        subscribed=SubscriberFacts.read(own.document),
        deliveries=read_deliveries(own.index),
        messages=own.messages.read_bytes(),
        frames=read_frames_seen(own.frames),
    )


@pytest.mark.parametrize("publication", ["exclusive", "concurrent"])
def test_files_of_both_are_those_that_the_judge_computes(driver, tmp_path, publication, capfd):
    case = small_case(tmp_path, publication=publication)
    left = run_both(case, driver, tmp_path)
    made, messages = planned(case)
    log = expected_log(made.lengths, MTU, TERM_LENGTH)
    assert left.messages == b"".join(messages)
    assert left.deliveries["length"].tolist() == made.lengths.tolist()
    assert left.deliveries["position"].tolist() == log.message_ends.tolist()
    assert left.offers["position"].tolist() == log.message_ends.tolist()
    assert left.frames["position"].tolist() == log.frames["position"].tolist()
    seen = headers(left.frames)
    for field, name in (("flags", "flags"), ("type", "frame_type")):
        data = log.frames["frame_type"] != 0
        assert seen[field][data].tolist() == log.frames[name][data].tolist()
    assert (seen["frame_length"] == log.frames["frame_length"]).all()
    facts, publisher = left.subscribed, left.published
    assert (facts.error, publisher.error, facts.eos_seen) == (None, None, True)
    assert facts.session_id == publisher.session_id == int(seen["session_id"][0])
    assert (facts.join_position, facts.end_position) == (0, log.end_position)
    assert (publisher.end_position, publisher.message_count) == (log.end_position, made.count)
    assert (publisher.initial_term_id, publisher.term_length, publisher.mtu) == (
        -1,
        TERM_LENGTH,
        MTU,
    )
    assert facts.message_bytes == case.traffic[0].total_bytes
    output = capfd.readouterr().out
    assert "ready\n" in output
    assert f"progress {facts.message_bytes}/{facts.message_bytes}\n" in output


def test_a_skipped_message_is_the_middle_one(driver, tmp_path):
    case = small_case(tmp_path)
    left = run_both(case, driver, tmp_path, publish="skip-message")
    made, messages = planned(case)
    del messages[made.count // 2]
    assert left.messages == b"".join(messages)
    assert left.published.message_count == made.count - 1


def test_a_flipped_byte_is_in_the_first_message(driver, tmp_path):
    case = small_case(tmp_path)
    left = run_both(case, driver, tmp_path, subscribe="flip-byte")
    made, messages = planned(case)
    expected = bytearray(b"".join(messages))
    expected[int(made.lengths[0]) // 2] ^= 0xFF
    assert left.messages == bytes(expected)


def test_a_subscriber_whose_driver_ends_reports_it(tmp_path):
    case = small_case(tmp_path)
    driver = make_driver(tmp_path)
    driver.start()
    chosen = options_of(case, "subscriber", driver, tmp_path)
    reading = RunningWorkload(subscriber.run, chosen)
    with Aeron(driver.context.dir) as aeron:
        publication = aeron.add_publication(case.traffic[0].channel, 1001)
        while publication.offer(b"no end") < 0:
            time.sleep(0.001)
        # Its subscriptions exist already, so that the stream ends and not the wait for its start.
        while read_positions(driver) != [publication.position] * 2:
            time.sleep(0.001)
        driver.close()
        assert isinstance(reading.end(), GaveUp)
    assert "shut down" in str(reading.error)
    facts = SubscriberFacts.read(chosen.files.subscriber("one").document)
    assert "shut down" in facts.error
    assert not facts.eos_seen


def read_positions(driver):
    found = map_cnc(driver.context.dir / "cnc.dat").counters()
    return [each.final_value for each in found if each.type_id == SUBSCRIBER_POSITION]


def test_a_stream_that_rejoins_continues_with_the_next_driver(tmp_path):
    case = small_case(tmp_path)
    traffic = case.traffic[0].model_copy(update={"rejoins": True})
    case = case.model_copy(update={"traffic": (traffic,)})
    driver = make_driver(tmp_path)
    driver.start()
    chosen = options_of(case, "subscriber", driver, tmp_path)
    reading = RunningWorkload(subscriber.run, chosen)
    with Aeron(driver.context.dir) as aeron:
        publication = aeron.add_publication(traffic.channel, 1001)
        while publication.offer(b"cut off") < 0:
            time.sleep(0.001)
        while read_positions(driver) != [publication.position] * 2:
            time.sleep(0.001)
        driver.close()
    with make_driver(tmp_path) as driver:
        assert (
            RunningWorkload(publisher.run, options_of(case, "publisher", driver, tmp_path)).end()
            is None
        )
        assert reading.end() is None
    facts = SubscriberFacts.read(chosen.files.subscriber("one").document)
    first, *_, last = facts.parts
    assert (first.eos_seen, last.eos_seen) == (False, True)
    assert first.session_id != last.session_id
    log = expected_log(planned(case)[0].lengths, MTU, TERM_LENGTH)
    assert (last.join_position, last.end_position) == (0, log.end_position)
    assert facts.message_bytes >= traffic.total_bytes


@pytest.mark.parametrize(
    ("role", "run"), [("publisher", publisher.run), ("subscriber", subscriber.run)]
)
def test_a_workload_that_waits_ends_when_it_is_asked_to(driver, tmp_path, role, run):
    case = small_case(tmp_path)
    chosen = options_of(case, role, driver, tmp_path)
    waiting = RunningWorkload(run, chosen)
    waiting.stop.request(15)
    assert isinstance(waiting.end(), Stopped)
    facts = PublisherFacts if role == "publisher" else SubscriberFacts
    document = getattr(chosen.files, role)("one").document
    assert "SIGTERM" in facts.read(document).error


def test_a_connection_timeout_is_that_of_the_stream(driver, tmp_path, capfd):
    case = small_case(tmp_path)
    waiting = RunningWorkload(publisher.run, options_of(case, "publisher", driver, tmp_path))
    waiting.stop.request(15)
    waiting.end()
    assert capfd.readouterr().out == f"progress 0/{case.traffic[0].total_bytes}\n"


@pytest.mark.parametrize(
    ("channel", "code"),
    [
        ("aeron:udp?endpoint=127.0.0.1:9|max-resend=soon", entry.SUBJECT_FAILED),
        ("aeron:udp?endpoint=127.0.0.1:9|ttl=1000", entry.SUBJECT_FAILED),
    ],
)
def test_the_exit_code_depends_on_the_reason(driver, tmp_path, channel, code, monkeypatch, capfd):
    small_case(tmp_path, channel=channel)
    monkeypatch.setattr(Stop, "on_signals", classmethod(lambda cls: cls()))
    line = ["publisher", "--case", str(tmp_path / "case.json"), "--traffic", "one"]
    line += ["--aeron-dir", str(driver.context.dir), "--out", str(tmp_path / "out")]
    assert entry.main(line) == code
    assert capfd.readouterr().err.startswith("publisher: ")
    assert PublisherFacts.read(tmp_path / "out" / "publisher-one.json").error


def test_a_saboteur_adds_to_the_streams_own_counter(driver, tmp_path):
    case = small_case(tmp_path)
    traffic = case.traffic[0]
    with Aeron(driver.context.dir) as aeron:
        aeron.add_subscription(traffic.receive, 1001)
        options = options_of(case, "saboteur", driver, tmp_path, "lying-counter")
        running = RunningWorkload(saboteur.run, options)
        aeron.add_publication(traffic.channel, 1001)
        assert running.end() is None
        found = map_cnc(driver.context.dir / "cnc.dat").counters()
        (value,) = [each.final_value for each in found if each.type_id == RECEIVER_NAKS_SENT]
        assert value == saboteur.INCREMENT * saboteur.INCREMENTS


def test_a_forged_nak_has_the_next_position_and_the_streams_port(monkeypatch):
    image = SimpleNamespace(
        position=3 * TERM_LENGTH + 96, term_length=TERM_LENGTH, initial_term_id=2147483646,
        session_id=-7,
    )  # fmt: skip
    frame = np.frombuffer(saboteur.nak_of(image, 1001), np.uint8).copy()
    fields = [get_i32(frame, at) for at in range(8, 28, 4)]
    assert (frame.size, get_i32(frame, 0), frame[6]) == (28, 28, 2)
    assert fields == [-7, 1001, -2147483647, 96, 32]
    sent = []

    class RawSocket:
        def __init__(self, *kind):
            assert kind == (2, 3, 17)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def sendto(self, datagram, to):
            sent.append((datagram, to))

    monkeypatch.setattr("windtunnel.harness.workload.saboteur.socket.socket", RawSocket)
    saboteur.send_from_port(24325, frame.tobytes(), "10.0.0.1:40001")
    ((datagram, to),) = sent
    assert to == ("10.0.0.1", 0)
    assert struct.unpack(">HHHH", datagram[:8]) == (24325, 40001, 36, 0)
    assert datagram[8:] == frame.tobytes()
