"""Frames and analysis flags of a capture as Wireshark decodes them, through tshark."""

import shutil
import subprocess
from pathlib import Path

KINDS = {"data": "DATA", "pad": "PAD", "heartbeat": "HEARTBEAT", "sm": "SM", "nak": "NAK"}
KINDS |= {"setup": "SETUP", "rtt": "RTTM"}
FLAGS = ("aeron.analysis.rx", "aeron.analysis.ooo", "aeron.analysis.idle_rx")
LIMIT_S = 100


def program() -> str | None:
    """Return the path of tshark on this machine, or None."""
    return shutil.which("tshark")


def rows(capture: Path, ports: list[int], fields: list[str]) -> list[list[str]]:
    """Return the fields of each packet that has Aeron frames, separated by commas per frame."""
    found = program()
    assert found is not None, "no tshark on this machine"
    command = [found, "-n", "-2", "-r", str(capture), "-Y", "aeron", "-T", "fields"]
    for port in ports:
        command += ["-d", f"udp.port=={port},aeron"]
    for preference in ("sequence_analysis", "stream_analysis"):
        command += ["-o", f"aeron.{preference}:TRUE"]
    for field in fields:
        command += ["-e", field]
    completed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S)
    return [line.split("\t") for line in completed.stdout.splitlines()]


def counts(capture: Path, ports: list[int]) -> dict[str, int]:
    """Return the number of frames by class, as in the table of frames."""
    lengths = rows(capture, ports, [f"aeron.{kind}.frame_length" for kind in KINDS])
    return {
        name: sum(len(row[index].split(",")) for row in lengths if row[index])
        for index, name in enumerate(KINDS.values())
    }


def retransmissions(capture: Path, ports: list[int]) -> int:
    """Return the number of data frames that it calls retransmissions, without heartbeats."""
    fields = ["aeron.data.frame_length", "aeron.sequence_analysis.retransmission"]
    found = 0
    for lengths, flags in rows(capture, ports, fields):
        frames = zip(lengths.split(","), flags.split(","), strict=False)
        found += sum(length not in ("", "0") and flag in ("1", "True") for length, flag in frames)
    return found


def linked_retransmissions(capture: Path, ports: list[int]) -> int:
    """Return the number of packets with data that it links to an earlier NAK."""
    linked = "aeron.sequence_analysis.retransmission.rx.frame"
    return sum(bool(row[0]) for row in rows(capture, ports, [linked]))


def flagged(capture: Path, ports: list[int], flag: str) -> list[tuple[int, int]]:
    """Return (term id, offset) of the first data frame of each packet with this flag."""
    packets = rows(capture, ports, ["aeron.data.term_id", "aeron.data.term_offset", flag])
    return [
        (int(row[0].split(",")[0], 0), int(row[1].split(",")[0]))
        for row in packets
        if row[2] and row[0]
    ]
