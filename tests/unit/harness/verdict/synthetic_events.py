"""The synthetic run with an event that paused or killed processes of a host."""

import struct
from dataclasses import replace
from pathlib import Path

from tests.unit.harness.verdict.synthetic_run import Packet, SyntheticRun
from windtunnel.harness.artifact.host.host_event import AppliedEvent, write_applied_events
from windtunnel.harness.scenario.schema.host_event import EventAction, EventCase, Process


def write_with_event(
    run: SyntheticRun,
    action: EventAction,
    host: str,
    process: Process,
    span_ns: tuple[int, int],
) -> Path:
    """Write the folder of a run in which an event paused a host's process, or killed it and
    restarted it.
    """
    path = run.write()
    began_ns, ended_ns = span_ns
    ordered = EventCase(
        id="event",
        host=host,
        process=process,
        trigger="delivered",
        at=1,
        action=action,
        lasts_ns=ended_ns - began_ns,
    )
    run.case.model_copy(update={"events": (ordered,)}).write(run.folder.case)
    applied = AppliedEvent("event", host, action, [process], began_ns, ended_ns)
    write_applied_events(run.folder.host_events, [applied])
    return path


def add_earlier_session(run: SyntheticRun, session_id: int) -> None:
    """Add all packets of the run once more, 10 s earlier, as those of another session. So it is if
    the publisher was killed and restarted.
    """
    for packets in run.packets.values():
        packets += [_of_session(each, session_id) for each in packets]


def _of_session(packet: Packet, session_id: int) -> Packet:
    at = 8 if packet.kind in ("SM", "NAK") else 12
    payload = packet.payload[:at] + struct.pack("<i", session_id) + packet.payload[at + 4 :]
    return replace(packet, time_ns=packet.time_ns - 10_000_000_000, payload=payload)
