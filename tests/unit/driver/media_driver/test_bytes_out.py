"""The bytes that a datagram of each frame type causes, compared with docs/reliability.md."""

import struct
from pathlib import Path

import pytest

from tests.naive import resolution, wire
from tests.sim.stream_pair import MS, SESSION_ID, STREAM_ID
from tests.unit.driver.media_driver.name_resolution.test_driver_name_resolver import World
from tests.unit.driver.media_driver.receiving_rig import ReceivingRig, data, heartbeat, setup
from tests.unit.driver.media_driver.sending_rig import SendingRig

DOCUMENT = Path(__file__).parents[4] / "docs" / "reliability.md"
STEP_NS = 5 * MS
SECONDS = 6
"""Duration of a scenario without another datagram, longer than the connection timeout."""
RECEIVER_ID = 99


def table():
    """The rows of the table by id: (bytes in, most bytes out)."""
    rows = {}
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and cells[2].isdigit():
            rows[cells[0]] = (int(cells[2]), int(cells[3]))
    return rows


def rttm(flags):
    values = (0, flags, wire.RTTM, SESSION_ID, STREAM_ID, 12_345, 0, 0)
    return wire.pack("rtt_measurement", 40, *values)


def frame_of(kind, length=40):
    """A frame of a type with a valid common header and a body for the stream."""
    body = SESSION_ID.to_bytes(4, "little") + STREAM_ID.to_bytes(4, "little") + bytes(length)
    return struct.pack(wire.HEADER, length, 0, 0, kind) + body[: length - 8]


def sent_by_receiver(rig, datagrams, kind=None, seconds=SECONDS):
    """Return the bytes of one frame type that a receiver sends after datagrams in one cycle."""
    rig.deliver(*datagrams)
    out = []
    for _ in range(seconds * 1_000 * MS // STEP_NS):
        out += rig.turn(STEP_NS)
    return sum(len(item) for item in out if kind is None or item[6] == kind)


def started_receiver(folder):
    rig = ReceivingRig(folder)
    rig.start()
    rig.state.images[0].nak_delay_ns, rig.state.images[0].nak_retry_ns = 100_000, 10 * MS
    return rig


def data_unknown(folder):
    datagram = heartbeat(0)
    return datagram, sent_by_receiver(ReceivingRig(folder), [datagram], seconds=1)


def setup_of_session(folder):
    rig, out = ReceivingRig(folder), []
    out += rig.start()
    for _ in range(SECONDS * 1_000 * MS // STEP_NS):
        out += rig.turn(STEP_NS)
    return setup(), sum(len(item) for item in out)


def gap(folder):
    rig, datagram = started_receiver(folder), heartbeat(32_704)
    rig.deliver(*(data(position, 992) for position in range(0, 4_096, 1_024)))
    rig.turn()
    return datagram, sent_by_receiver(rig, [datagram], wire.NAK)


def gap_after_setup(folder):
    datagram = heartbeat(32_704)
    return datagram, sent_by_receiver(started_receiver(folder), [datagram])


def rttm_at_receiver(folder):
    return rttm(0x80), sent_by_receiver(started_receiver(folder), [rttm(0x80)], wire.RTTM)


def others_at_receiver(folder):
    kinds = (wire.SM, wire.NAK, wire.ERR, wire.RES, wire.RSP_SETUP)
    datagrams = [frame_of(kind) for kind in kinds]
    rig = ReceivingRig(folder)
    return datagrams[0], sent_by_receiver(rig, [*datagrams, rttm(0)])


def sent_by_sender(rig, kinds, seconds=SECONDS):
    """Return the bytes of some frame types that a sender sends from now on."""
    out = []
    for _ in range(seconds * 1_000 * MS // STEP_NS):
        out += rig.turn(STEP_NS)
    return sum(len(item) for item in out if item[6] in kinds)


def status_message(rig, window, flags=0):
    term_id, offset = rig.place(0)
    values = (SESSION_ID, STREAM_ID, term_id, offset, window, RECEIVER_ID)
    return wire.pack("status_message", 36, 0, flags, wire.SM, *values)


def is_heartbeat(datagram):
    return datagram[:4] == bytes(4)


def status(folder):
    rig = SendingRig(folder)
    rig.begin()
    rig.offer(*([1_000] * 40))
    datagram = status_message(rig, 32_768)
    rig.deliver(datagram)
    out = []
    for _ in range(SECONDS * 1_000 * MS // STEP_NS):
        out += rig.turn(STEP_NS)
    data = [item for item in out if item[6] == wire.DATA and not is_heartbeat(item)]
    return datagram, sum(len(item) for item in data)


def status_heartbeats(folder):
    rig = SendingRig(folder)
    rig.begin()
    datagram = status_message(rig, 32_768)
    rig.deliver(datagram)
    return datagram, sent_by_sender(rig, (wire.DATA,), seconds=5)


def elicitation(folder):
    rig = SendingRig(folder)
    rig.start()
    rig.turn(200 * MS)
    datagram = status_message(rig, 0, 0x80)
    rig.deliver(datagram)
    return datagram, sent_by_sender(rig, (wire.SETUP,), seconds=1)


def nak(folder):
    rig = SendingRig(folder)
    rig.start()
    rig.offer(*([1_000] * 30))
    for _ in range(40):
        rig.turn(STEP_NS)
    assert rig.positions[0] == 30 * 1_056
    term_id, offset = rig.place(0)
    values = (28, 0, 0, wire.NAK, SESSION_ID, STREAM_ID, term_id, offset, 65_536)
    datagram = wire.pack("nak", *values)
    rig.deliver(datagram)
    out = []
    for _ in range(1_000 * MS // STEP_NS):
        out += rig.turn(STEP_NS)
    data = [item for item in out if item[6] == wire.DATA and not is_heartbeat(item)]
    return datagram, sum(len(item) for item in data)


def rttm_at_sender(folder):
    rig = SendingRig(folder)
    rig.start()
    rig.deliver(rttm(0x80))
    return rttm(0x80), sent_by_sender(rig, (wire.RTTM,), seconds=1)


def others_at_sender(folder):
    rig = SendingRig(folder)
    rig.begin()
    rig.turn(5 * MS)
    datagrams = [frame_of(kind) for kind in (wire.SETUP, wire.ERR, wire.RES, wire.RSP_SETUP)]
    for datagram in [*datagrams, rttm(0)]:
        rig.deliver(datagram)
    out = [item for _ in range(10) for item in rig.turn(STEP_NS)]
    return datagrams[0], sum(len(item) for item in out)


def name_resolution(_):
    world = World()
    driver = world.driver("A", "10.0.0.1", 8050)
    names = [resolution.entry(b"n%d" % i, f"10.1.0.{i}", 9) for i in range(200)]
    driver.deliver(resolution.frame(*names), "10.0.0.2", 8050)
    world.run(1_500)
    driver.socket.sent.clear()
    datagram = resolution.frame(resolution.entry(b"", "10.7.0.1", 9, 0, 0x80))
    driver.deliver(datagram, "10.7.0.1", 9)
    world.run(13_000)
    return datagram, sum(len(item) for item, _ in driver.socket.sent)


SCENARIOS = {
    "data-unknown": data_unknown,
    "setup": setup_of_session,
    "gap": gap,
    "gap-after-setup": gap_after_setup,
    "rttm-receiver": rttm_at_receiver,
    "receiver-other": others_at_receiver,
    "status": status,
    "status-heartbeat": status_heartbeats,
    "elicitation": elicitation,
    "nak": nak,
    "rttm-sender": rttm_at_sender,
    "sender-other": others_at_sender,
    "resolution": name_resolution,
}


def test_every_row_is_measured():
    assert list(table()) == list(SCENARIOS)


@pytest.mark.parametrize("row", SCENARIOS)
def test_no_datagram_causes_more_bytes_than_documented(tmp_path, row):
    length, most = table()[row]
    datagram, sent = SCENARIOS[row](tmp_path)
    assert len(datagram) == length
    assert sent <= most
    # A scenario in which nothing happens would prove nothing.
    assert sent >= 0.6 * most
