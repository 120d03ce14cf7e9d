"""A case of one small stream over the loopback interface, written as by a run."""

import hashlib

from tests.peer.ports import free_port
from windtunnel.harness.scenario.resolved.case import Case, HostCase, Payload, TrafficCase

SEED = 5
TERM_LENGTH, MTU, LONGEST = 65_536, 1_408, 8_192
INITIAL_TERM_ID = -1


def small_case(folder, *, total_bytes=300_000, publication="exclusive", channel=""):
    """Write case.json and its payload, which is shorter than the longest message."""
    payload = folder / "payload.bin"
    payload.write_bytes(b"".join(hashlib.sha256(bytes([n])).digest() for n in range(200)))
    port = free_port()
    endpoint = f"aeron:udp?endpoint=127.0.0.1:{port}"
    traffic = TrafficCase(
        id="one", ordinal=0, stream_id=1001, from_host="a", to_host="b",
        publication=publication, receive=endpoint, port=port, reliable=True,
        channel=channel or f"{endpoint}|term-length=64k|mtu=1408|init-term-id=-1|term-id=-1|"
        "term-offset=0",
        term_length=TERM_LENGTH, mtu=MTU, initial_term_id=INITIAL_TERM_ID, initial_position=0,
        receiver_window_bytes=None, total_bytes=total_bytes, shortest_bytes=1,
        longest_bytes=LONGEST,
    )  # fmt: skip
    case = Case(
        name="small", about="", seed=SEED, fidelity="netns",
        hosts=(HostCase(name="a", address="127.0.0.1"), HostCase(name="b", address="127.0.0.1")),
        payload=Payload(path=str(payload), sha256="", length_bytes=payload.stat().st_size),
        traffic=(traffic,), faults=(), expect=(), wall_ns=1,
    )  # fmt: skip
    case.write(folder / "case.json")
    return case
