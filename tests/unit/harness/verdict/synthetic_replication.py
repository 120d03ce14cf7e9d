"""Adds a replication to the synthetic run: the archive of a sends its recording to that of b.

a:40000  --- stream ------>  b:24325
a:40001  --- recording --->  b:8030      the same session, stream and positions; one frame twice
         <-- SM, one NAK --
"""

from dataclasses import replace

from tests.unit.harness.verdict.synthetic_run import (
    PACKETS_RECEIVED,
    PACKETS_SENT,
    SENDER_PORT,
    STEP_NS,
    Packet,
    SyntheticRun,
    nak,
)
from windtunnel.harness.scenario.schema.archive import REPLICATION_PORT, ArchiveCase

SOCKET = SENDER_PORT + 1
DATA = ("DATA", "PAD")


def replicate(run: SyntheticRun) -> None:
    """Record the stream on a, and replicate it to b after its end. Counts what is sent."""
    changes = {"recorded": "a", "replicated": "b"}
    traffic = run.traffic.model_copy(update=changes)
    archives = tuple(ArchiveCase(host=each, segment_bytes=1 << 20) for each in "ab")
    run.case = run.case.model_copy(update={"traffic": (traffic,), "archives": archives})
    sent = [each for each in run.packets["a"] if each.source == "a"]
    messages = [each for each in run.packets["b"] if each.source == "b" and each.kind == "SM"]
    known, first = set(), []
    for each in sent:
        if each.kind not in DATA or each.payload not in known:
            first.append(each)
        known.add(each.payload)
    again = replace(next(each for each in first if each.kind == "DATA"))
    asked = replace(messages[0], kind="NAK", payload=nak(0, len(again.payload)))
    flow = sorted([*first, *messages], key=lambda each: each.time_ns)
    for packet in [*flow, asked, again]:
        _carry(run, packet, is_new=packet.kind in DATA and packet is not again)
        if packet is again:
            run.values["a/11"] = run.values.get("a/11", 0) + 1
            run.values["a/36"] = run.values.get("a/36", 0) + len(again.payload)


def _carry(run: SyntheticRun, packet: Packet, *, is_new: bool) -> None:
    run.now_ns += STEP_NS
    to_b = packet.source == "a"
    ports = (SOCKET, REPLICATION_PORT) if to_b else (REPLICATION_PORT, SOCKET)
    for host in (packet.source, packet.destination):
        late_ns = 0 if host == packet.source else STEP_NS // 2
        run.packets[host].append(replace(packet, time_ns=run.now_ns + late_ns, ports=ports))
    length = len(packet.payload)
    is_sent = is_new or packet.kind == "HEARTBEAT"
    for host, counter, more in (
        (packet.source, PACKETS_SENT.get(packet.kind), 1),
        (packet.destination, PACKETS_RECEIVED.get(packet.kind), 1),
        (packet.source, 0, length if is_sent else 0),
        (packet.destination, 1, length if to_b else 0),
    ):
        if counter is not None:
            run.values[f"{host}/{counter}"] = run.values.get(f"{host}/{counter}", 0) + more
