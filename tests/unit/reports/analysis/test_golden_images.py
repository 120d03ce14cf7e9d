"""Images of the golden captures have the received messages: count, bytes and checksum."""

import ctypes
import re
import zlib

import pytest

from tests.golden.reader import GOLDEN, datagrams, message, seen_by
from tests.stand_ins import synthetic_capture as made
from tests.stand_ins.synthetic_capture import START_NS, packet
from tests.unit.reports.analysis.test_analyze import SETS, counter
from windtunnel.harness.dissect.frames.crc32 import combined_crc32
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.options import AnalysisOptions

RELIABLE = [each for each in SETS if each != "loss-unreliable"]
FLOW_CONTROL_OVER_RUNS = 13
LOSS_SHARE, LOSS_SEED = 0.05, 42
EXTENDING_SESSION, EXTENSION_LENGTH_MAX = -1_166_092_544, 2_000
"""Of the golden archive's recording 0, by `describe.txt` and its README."""
LENGTH_MAX = 1_300
"""Of messages in the set loss-unreliable."""


def golden(golden_set, name="capture.pcap"):
    options = AnalysisOptions(messages=True)
    return analyze([f"x={GOLDEN / golden_set / name}.xz"], options=options)


def checksum(golden_set):
    text = (GOLDEN / golden_set / "sub.txt").read_text()
    return int(re.search(r"crc32=([0-9a-f]+)", text)[1], 16)


@pytest.mark.parametrize("golden_set", RELIABLE)
def test_messages_have_the_checksum_of_the_subscriber(golden_set):
    result, subscriber = golden(golden_set), seen_by(golden_set, "sub.txt")
    (image,), (flow,) = result.images.to_pylist(), result.flows.to_pylist()
    assert image["crc32"] == checksum(golden_set)
    assert image["messages"] == flow["messages"] == subscriber["messages"]
    assert image["message_bytes"] == subscriber["bytes"]
    assert image["end_position"] == flow["rebuilt_position"] == subscriber["imagePosition"]
    assert (image["broken_messages"], image["holes"]) == (0, 0)


@pytest.mark.parametrize("golden_set", RELIABLE)
def test_frames_beyond_the_receiver_window_equal_those_that_the_driver_counted(golden_set):
    (window,) = golden(golden_set).windows.to_pylist()
    assert window["over_runs"] == counter(SETS[golden_set][0], FLOW_CONTROL_OVER_RUNS)
    subscriber = seen_by(golden_set, "sub.txt")
    assert window["consumed_position"] <= subscriber["imagePosition"]
    furthest = window["consumed_position"] + window["window_max"]
    # Java's cubic congestion control makes the window smaller and larger.
    is_steady = window["window_min"] == window["window_max"]
    assert window["limit"] == furthest if is_steady else window["limit"] < furthest
    assert is_steady or golden_set == "java-cubic-loss"


def test_messages_that_an_unreliable_receiver_dropped_and_kept():
    """The receiver dropped frames after the capture, by the rule in its README."""
    result, subscriber = golden("loss-unreliable"), seen_by("loss-unreliable", "sub.txt")
    draw = ctypes.CDLL(None).erand48
    draw.restype = ctypes.c_double
    words = (ctypes.c_ushort * 3)(0, 0, LOSS_SEED)
    dropped: set[int] = set()
    for each in datagrams("loss-unreliable"):
        if each.payload[6:8] == b"\x01\x00" and draw(words) <= LOSS_SHARE:
            at = 0
            while at + 32 <= len(each.payload):
                length = int.from_bytes(each.payload[at : at + 4], "little")
                if length > 0 and each.payload[at + 6] == 1:
                    dropped.add(position_of(each.payload, at))
                at += (length + 31) & ~31 or 32
    kept = [each for each in result.messages.to_pylist() if each["position"] not in dropped]
    assert len(kept) == subscriber["messages"]
    assert sum(each["length"] for each in kept) == subscriber["bytes"]
    total = 0
    for each in kept:
        total = combined_crc32(total, each["crc32"], each["length"])
    assert total == checksum("loss-unreliable")
    assert result.messages.num_rows == 600


def position_of(datagram, at):
    offset, term = (
        int.from_bytes(datagram[at + field : at + field + 4], "little") for field in (8, 20)
    )
    return (term - 7) * (1 << 17) + offset


def test_a_capture_of_data_only_has_the_same_checksum():
    (image,) = golden("java-cubic-loss", "data.pcap").images.to_pylist()
    assert image["crc32"] == checksum("java-cubic-loss")
    assert image["message_bytes"] == seen_by("java-cubic-loss", "sub.txt")["bytes"]


def test_recorded_streams_have_the_messages_that_were_published():
    """The golden archive's application recorded what it sent; message `i` follows a rule."""
    result = golden("archive", "control.pcap")
    images = {each["session_id"]: each for each in result.images.to_pylist()}
    published: dict[int, int] = {}
    text = (GOLDEN / "archive" / "recordings.txt").read_text()
    for line in text.splitlines():
        facts = {key: int(value) for key, value in re.findall(r"(\w+)=(-?\d+)", line)}
        if "messages" not in facts:
            continue
        recording, first = facts["recording"], published.get(facts["recording"], 0)
        session = facts.get("session", EXTENDING_SESSION)
        length_max = facts.get("maxLen", EXTENSION_LENGTH_MAX)
        sent = [message(index, length_max).tobytes() for index in range(first, facts["messages"])]
        image = images[session]
        assert image["messages"] == len(sent)
        assert image["message_bytes"] == sum(len(each) for each in sent)
        assert image["crc32"] == zlib.crc32(b"".join(sent))
        assert image["end_position"] == facts["stop"]
        assert (image["broken_messages"], image["holes"]) == (0, 0)
        published[recording] = facts["messages"]
    assert published == {0: 250, 1: 300, 2: 400}
    assert len(result.images) == 6


def test_each_message_has_its_position_length_and_checksum():
    messages = golden("loss-unreliable").messages.to_pylist()
    for index, each in enumerate(messages):
        content = message(index, LENGTH_MAX).tobytes()
        assert (each["length"], each["crc32"]) == (len(content), zlib.crc32(content))
    positions = [each["position"] for each in messages]
    assert positions == sorted(positions)


def made_image(tmp_path, *payloads, **wanted):
    path = tmp_path / "made.pcap"
    packets = [packet(START_NS + index * 1_000, each) for index, each in enumerate(payloads)]
    path.write_bytes(made.pcap(packets))
    result = analyze([str(path)], options=AnalysisOptions(**(wanted or {"messages": True})))
    (image,) = result.images.to_pylist()
    return image, result.messages.to_pylist()


def test_fragments_that_arrive_in_any_order_are_one_message(tmp_path):
    first = made.data(0, b"a" * 64, flags=0x80)
    middle, last = made.data(96, b"b" * 64, flags=0), made.data(192, b"c" * 5, flags=0x40)
    image, messages = made_image(tmp_path, made.setup(), first, last, middle, middle)
    (only,) = messages
    assert only["crc32"] == image["crc32"] == zlib.crc32(b"a" * 64 + b"b" * 64 + b"c" * 5)
    assert (only["position"], only["length"], only["time_ns"]) == (0, 133, START_NS + 3_000)


def test_a_message_with_a_hole_is_broken_and_those_around_it_are_not(tmp_path):
    image, messages = made_image(
        tmp_path,
        made.setup(),
        made.data(0, b"x"),
        made.data(64, b"a" * 32, flags=0x80),
        made.data(192, b"c" * 32, flags=0x40),
        made.data(256, b"y"),
    )
    assert [each["position"] for each in messages] == [0, 256]
    assert (image["broken_messages"], image["holes"], image["hole_bytes"]) == (1, 1, 64)
    assert image["end_position"] == 320


def test_a_capture_that_begins_within_a_message_leaves_it_out(tmp_path):
    image, messages = made_image(
        tmp_path, made.setup(), made.data(96, b"b", flags=0x40), made.data(160, b"whole")
    )
    assert [each["crc32"] for each in messages] == [zlib.crc32(b"whole")]
    assert image["broken_messages"] == 0


def test_without_payloads_there_is_no_checksum(tmp_path):
    image, messages = made_image(tmp_path, made.setup(), made.data(0, b"abc"), checksums=False)
    assert (image["messages"], image["message_bytes"], image["crc32"]) == (1, 3, None)
    assert messages == []


def test_a_frame_that_never_arrives_is_skipped_a_term_later(tmp_path):
    payload = bytes(32)
    frames = [made.data(offset % 65_536, payload, term=5 + offset // 65_536)
              for offset in range(0, 4 * 65_536, 64) if offset != 640]  # fmt: skip
    image, messages = made_image(tmp_path, made.setup(), *frames)
    assert (image["holes"], image["hole_bytes"]) == (1, 64)
    assert image["messages"] == len(messages) == len(frames)
