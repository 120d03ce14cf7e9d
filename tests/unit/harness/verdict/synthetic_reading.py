"""A small hand-made run whose figures can be counted by hand.

    ms    10  20  30  40  60  70  90  92  100 112 140 160 180 200 222 225 240
    a     f0  f1  f2  f3          f1  f2  f4          f1      f5          f4    lost: f1, f2, f1
    b                     f3  NAK             f2  NAK     f1      f6  f5

    ms    230 330        350        355  375  395  600  620
    a     f7  heartbeat                  f7        f8                           lost: f7
    b                    heartbeat  NAK       f7        f8

Each message is one frame of 160 bytes. Frames 5 and 6 are reordered; frame 4 is sent again although
it had arrived. Of ten planned messages, the last one is not published. Not shown: the status
messages of b.
"""

from tests.unit.harness.verdict.synthetic_run import (
    MTU,
    SEED,
    START_NS,
    TERM_LENGTH,
    TRAFFIC,
    Packet,
    heartbeat,
    make_run,
    nak,
    setup_frame,
    status_message,
)
from tests.unit.harness.verdict.synthetic_times import write_times
from windtunnel.harness.artifact.documents import read_document, write_document
from windtunnel.harness.artifact.run.plan import plan
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.dissect.driver_files.expected_log import expected_log

MS = 1_000_000
FLAGS_OFFSET = 5
FRAME_BYTES = 160
LOST = None
PORTS = (40_000, 24_325)
SENT = (
    (10, 0, 30), (20, 1, LOST), (30, 2, LOST), (40, 3, 60), (90, 1, LOST), (92, 2, 112),
    (100, 4, 120), (160, 1, 180), (200, 5, 225), (210, 6, 222), (230, 7, LOST), (240, 4, 260),
    (375, 7, 395), (600, 8, 620),
)  # fmt: skip
"""Time of transmission, frame, and time of arrival, in ms."""
NAKS = ((70, 1, 2), (140, 1, 1), (355, 7, 1))
"""Time, first frame and number of frames of each NAK."""
STATUS_MESSAGES = ((25, 0, 0x80), (28, 0, 0), (242, 7, 0), (630, 9, 0))
"""Time, next frame and flags of each status message. The first one requests a SETUP."""
DUE_MS = (8, 18, 28, 38, 48, 198, 208, 228, 500)
DELIVERED_MS = (31, 185, 185, 185, 185, 226, 226, 520, 621)


def captured(made, source, payload, kind, sent_ms, arrived_ms):
    """Add a datagram to the captures of both hosts."""
    other = "b" if source == "a" else "a"
    ports = PORTS if source == "a" else PORTS[::-1]
    for host, at_ms in ((source, sent_ms), (other, arrived_ms)):
        if at_ms is not LOST:
            at_ns = START_NS + at_ms * MS
            made.packets[host].append(Packet(at_ns, source, other, ports, payload, kind))


def without_frames(path, total_bytes):
    """Return a run with messages of 100 bytes, in which no DATA was sent, not written."""
    made = make_run(path)
    (traffic,) = made.case.traffic
    pace = traffic.pace.model_copy(update={"bytes_per_s": 2000})
    facts = {"total_bytes": total_bytes, "shortest_bytes": 100, "longest_bytes": 100, "pace": pace}
    made.case = made.case.model_copy(update={"traffic": (traffic.model_copy(update=facts),)})
    made.plan = plan(SEED, TRAFFIC, total_bytes, 100, 100)
    made.log = expected_log(made.plan.lengths, MTU, TERM_LENGTH)
    made.manifest.processes, made.decisions, made.frames, made.seen_ns = [], [], [], []
    made.packets = {"a": [], "b": []}
    captured(made, "a", setup_frame(), "SETUP", 1, 21)
    return made


def made_by_hand(path):
    """Return the run of the drawing, not written."""
    made = without_frames(path, 1000)
    assert made.log.frames["position"].tolist() == list(range(0, 1600, FRAME_BYTES))
    for sent_ms, frame, arrived_ms in SENT:
        captured(made, "a", made.frame_bytes(frame), "DATA", sent_ms, arrived_ms)
    captured(made, "a", heartbeat(8 * FRAME_BYTES), "HEARTBEAT", 330, 350)
    for sent_ms, first, count in NAKS:
        request = nak(first * FRAME_BYTES, count * FRAME_BYTES)
        captured(made, "b", request, "NAK", sent_ms, sent_ms + 20)
    for sent_ms, frame, flags in STATUS_MESSAGES:
        status = bytearray(status_message(frame * FRAME_BYTES))
        status[FLAGS_OFFSET] = flags
        captured(made, "b", bytes(status), "SM", sent_ms, sent_ms + 20)
    made.messages = [((each + 1) * FRAME_BYTES, bytes(100)) for each in range(9)]
    return made


def written(made):
    """Write the run's folder, with the times of its messages."""
    folder = RunDir(made.write())
    near = folder.host("a").publisher(TRAFFIC)
    write_document(near.document, read_document(near.document) | {"message_count": 9})
    write_times(made, at_ms(DUE_MS), at_ms(DELIVERED_MS))
    return folder


def at_ms(times):
    return [START_NS + each * MS for each in times]
