"""The counters, losses, messages and checksum of every golden set of real Aeron, exactly."""

import json
import re
import zlib
from typing import NamedTuple

import pytest

from tests.golden.reader import GOLDEN, load, load_array, seen_by
from tests.unit.harness.inspect.driver_folder import unpack, unpack_loss_report
from windtunnel.harness.artifact.middlebox.frame_class import DATA, HEARTBEAT
from windtunnel.harness.cli.root import main
from windtunnel.harness.dissect.capture.pcap import read_capture_bytes

TICKING = {0, 1, 7, 8, 9, 10, 26, 28, 30}
"""System counters that had changed when AeronStat ran, shortly after the copy was made."""
ROUND_TRIP_TIME = "rcv-cc-cubic-rtt"


class Golden(NamedTuple):
    """The paths of the parts of one set."""

    folder: str
    cnc: str
    losses: str
    capture: str = "capture.pcap"
    logs: bool = True


SETS = {
    "one-message": Golden("one-message", "cnc-one-message", "one-message"),
    "clean": Golden("clean", "cnc-clean", "clean"),
    "loss-reliable": Golden("loss-reliable", "loss-reliable", "reliable", logs=False),
    "loss-unreliable": Golden("loss-unreliable", "cnc-loss-unreliable", "unreliable"),
    "loss-concurrent-mtu8k": Golden(
        "loss-concurrent-mtu8k", "cnc-loss-concurrent-mtu8k", "concurrent"
    ),
    "java-cubic-loss": Golden(
        "java-cubic-loss", "cnc-java-cubic-loss", "java", "data.pcap", logs=False
    ),
    "mdc-dynamic": Golden("mdc-dynamic", "mdc-dynamic", "mdc-dynamic"),
}
WITH_LOGS = [name for name, golden in SETS.items() if golden.logs]


def output(capsys, *arguments):
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", SETS)
def test_stat_shows_what_aeron_stat_showed(name, tmp_path, capsys):
    golden = SETS[name]
    text = (GOLDEN / golden.cnc / "aeron-stat.txt").read_text()
    lines = re.findall(r"^ *(\d+): +(-?[\d,]+) - (.*)$", text, re.MULTILINE)
    expected = {int(each[0]): (int(each[1].replace(",", "")), each[2]) for each in lines}
    found = output(capsys, "stat", "--dir", unpack(golden.cnc, tmp_path))
    assert [each["counter_id"] for each in found["counters"]] == sorted(expected)
    assert len(expected) >= 62
    exact = 0
    for counter in found["counters"]:
        value, label = expected[counter["counter_id"]]
        assert counter["label"] == label
        if counter["counter_id"] in TICKING:
            assert 0 < counter["value"] <= value
        elif not label.startswith(ROUND_TRIP_TIME):
            exact += 1
            assert counter["value"] == value, label
    assert exact >= 50
    for version, pid in re.findall(r"\(CnC v([\d.]+)\), pid (\d+)", text):
        assert (found["driver"]["cnc_version"], found["driver"]["pid"]) == (version, int(pid))


@pytest.mark.parametrize("name", SETS)
def test_loss_shows_what_loss_stat_showed(name, tmp_path, capsys):
    golden = SETS[name]
    text = (GOLDEN / "loss-report" / f"{golden.losses}.txt").read_text()
    rows = [line.split(",") for line in text.splitlines()[1:-1]]
    (count,) = re.findall(r"^(\d+) loss entries$", text, re.MULTILINE)
    found = output(capsys, "loss", "--dir", unpack_loss_report(golden.losses, tmp_path))["losses"]
    assert len(found) == len(rows) == int(count)
    for loss, row in zip(found, rows, strict=True):
        assert [loss["observation_count"], loss["bytes_lost"]] == [int(row[0]), int(row[1])]
        assert [milliseconds(loss["first_ms"]), milliseconds(loss["last_ms"])] == row[2:4]
        assert [str(loss["session_id"]), str(loss["stream_id"])] == row[4:6]
        assert [loss["channel"], loss["source"]] == row[6:]


def milliseconds(epoch_ms):
    """Return a time in ms as LossStat printed it, on a machine with UTC."""
    from datetime import UTC, datetime

    whole = datetime.fromtimestamp(epoch_ms // 1000, tz=UTC)
    return f"{whole:%Y-%m-%d %H:%M:%S}.{epoch_ms % 1000:03}+0000"


def dropped_datagrams(frames):
    """Return the datagrams that the receiver of `loss-unreliable` dropped, see its README."""
    drawn = 42 << 32
    dropped = set()
    seen = set()
    for frame in frames:
        datagram = int(frame["datagram"])
        if datagram in seen:
            continue
        seen.add(datagram)
        if frame["frame_type"] in (DATA, HEARTBEAT):
            drawn = (drawn * 0x5DEECE66D + 0xB) % (1 << 48)
            if drawn / (1 << 48) <= 0.05:
                dropped.add(datagram)
    return dropped


def payloads(name):
    """Return payload and END flag at each position of the stream, as the subscriber got them."""
    golden = SETS[name]
    capture = read_capture_bytes(load_array(golden.folder, golden.capture))
    assert (capture.problem, capture.torn, capture.cut) == ("", False, 0)
    seen = seen_by(golden.folder, "pub.txt")
    dropped = dropped_datagrams(capture.frames) if name == "loss-unreliable" else set()
    found = {}
    for frame in capture.frames[capture.frames["frame_type"] == DATA]:
        if int(frame["datagram"]) in dropped or frame["session_id"] != seen["session"]:
            continue
        term_count = (int(frame["term_id"]) - seen["initialTermId"]) % (1 << 32)
        position = term_count * seen["termLength"] + int(frame["term_offset"])
        at, length = int(frame["at"]), int(frame["frame_length"])
        content = capture.buf[at + 32 : at + length].tobytes()
        assert found.setdefault(position, (content, int(frame["flags"])))[0] == content
    return found


@pytest.mark.parametrize("name", SETS)
def test_messages_and_checksum_are_those_of_the_subscriber(name):
    found = payloads(name)
    seen = (GOLDEN / SETS[name].folder / "sub.txt").read_text()
    (crc32,) = re.findall(r"crc32=([0-9a-f]+)", seen)
    numbers = seen_by(SETS[name].folder, "sub.txt")
    checksum = 0
    for position in sorted(found):
        checksum = zlib.crc32(found[position][0], checksum)
    assert sum(bool(flags & 0x40) for _, flags in found.values()) == numbers["messages"]
    assert sum(len(content) for content, _ in found.values()) == numbers["bytes"]
    assert f"{checksum:08x}" == crc32


@pytest.mark.parametrize("log", ["publication-4.logbuffer", "image-5.logbuffer"])
@pytest.mark.parametrize("name", WITH_LOGS)
def test_frames_of_a_log_are_those_of_the_capture(name, log, tmp_path, capsys):
    golden = SETS[name]
    (tmp_path / log).write_bytes(load(golden.folder, log))
    found = output(capsys, "logbuffer", tmp_path / log)
    seen = seen_by(golden.folder, "pub.txt")
    metadata = found["metadata"]
    assert metadata["initial_term_id"] == seen["initialTermId"]
    assert (metadata["term_length"], metadata["mtu_length"]) == (seen["termLength"], seen["mtu"])
    assert found["default_header"]["session_id"] == seen["session"]
    frames = [frame for term in found["terms"] for frame in term["frames"]]
    assert (
        max(frame["position"] + aligned(frame["frame_length"]) for frame in frames)
        == (seen["position"])
    )
    assert all(frame["offset"] == frame["term_offset"] for frame in frames)
    sent = payloads(name)
    data = [frame for frame in frames if frame["type"] == "DATA"]
    assert all(frame["position"] in sent for frame in data if "image" in log)
    assert all(
        frame["frame_length"] - 32 == len(sent[frame["position"]][0])
        for frame in data
        if frame["position"] in sent
    )
    if "image" not in log:
        tail = found["tails"][metadata["active_term_index"]]
        assert tail["position"] == seen["position"]


def aligned(length):
    return (length + 31) // 32 * 32


def test_gap_fills_of_an_image_are_pads(tmp_path, capsys):
    (tmp_path / "log").write_bytes(load("loss-unreliable", "image-5.logbuffer"))
    found = output(capsys, "logbuffer", tmp_path / "log")
    pads = {
        frame["position"]: aligned(frame["frame_length"])
        for term in found["terms"]
        for frame in term["frames"]
        if frame["type"] == "PAD"
    }
    sent = read_capture_bytes(load_array("loss-unreliable", "capture.pcap")).frames
    delivered = payloads("loss-unreliable")
    lost = {
        (int(frame["term_id"]) - 7) * 131072 + int(frame["term_offset"])
        for frame in sent[sent["frame_type"] == DATA]
    } - set(delivered)
    assert len(lost) == 600 - 567
    in_the_log = {position for position in lost if position >= min(pads)}
    assert len(in_the_log) >= 10
    assert all(any(at <= each < at + pads[at] for at in pads) for each in in_the_log)


def test_the_errors_of_a_real_driver_are_shown(tmp_path, capsys):
    found = output(capsys, "errors", "--dir", unpack("cnc-commands", tmp_path))["errors"]
    assert [each["count"] for each in found].count(2) == 1
    assert len(found) == 4
    assert all(0 < each["first_ms"] <= each["last_ms"] for each in found)
    reasons = [each["text"].splitlines()[0] for each in found]
    assert reasons[:3] == [
        "(22) Invalid argument",
        "(-6) unknown command type id",
        "(-7) malformed command",
    ]
    assert reasons[3].startswith("onPublicationError: registrationId=4")
