"""The synthetic run with a second subscriber, c, which receives everything that a sends.

a --- each frame once for b, once for c ---> b loses every tenth, and sends NAKs
                                       `---> c loses none, and sends no NAKs
"""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.harness.verdict import synthetic_run
from tests.unit.harness.verdict.synthetic_run import (
    ADDRESS,
    COUNTERS,
    STEP_NS,
    Packet,
    SyntheticRun,
)
from windtunnel.harness.artifact.host.counter_sample import read_counters, write_counters
from windtunnel.harness.scenario.resolved.case import HostCase, LinkCase

C_ADDRESS = "10.64.2.10"
C_RECEIVER_ID = 100
GROUP_FLAG = 0x40
CHANNEL = f"aeron:udp?control-mode=dynamic|control={ADDRESS['a']}:24324"


def join(run: SyntheticRun, patch: pytest.MonkeyPatch, *, first: str) -> None:
    """Add subscriber c; `first` is the one that the traffic's `to_host` names."""
    patch.setitem(synthetic_run.ADDRESS, "c", C_ADDRESS)
    for each in (each for captured in run.packets.values() for each in captured):
        if each.kind == "SETUP":
            each.payload = each.payload[:5] + bytes([GROUP_FLAG]) + each.payload[6:]
    sent = [each for each in run.packets["a"] if each.source == "a"]
    status_messages = [each for each in run.packets["b"] if each.kind == "SM"]
    run.packets["c"] = []
    for each in [*sent, *status_messages]:
        run.packets["a" if each.source == "a" else "c"].append(copy(each))
        far = "c" if each.source == "a" else "a"
        run.packets[far].append(replace(copy(each), time_ns=each.time_ns + STEP_NS // 2))
    readers = (first, "b" if first == "c" else "c")
    stream = run.traffic.model_copy(
        update={"to_host": first, "to_hosts": readers, "channel": CHANNEL}
    )
    run.case = run.case.model_copy(
        update={
            "traffic": (stream,),
            "hosts": (*run.case.hosts, HostCase(name="c", address=C_ADDRESS)),
            "links": tuple(LinkCase(between=("a", each)) for each in ("b", "c")),
        }
    )


def copy(packet: Packet) -> Packet:
    """Return the packet as sent to or by c, a nanosecond later."""
    if packet.source == "a":
        return replace(packet, time_ns=packet.time_ns + 1, destination="c")
    own = packet.payload[:28] + C_RECEIVER_ID.to_bytes(8, "little")
    return replace(packet, time_ns=packet.time_ns + 1, source="c", payload=own)


def write(
    run: SyntheticRun,
    counted: dict[int, int] | None = None,
    of_streams: dict[str, int] | None = None,
) -> Path:
    """Write the folder; c's counters have these values, its other files equal those of b.

    System counters go by id, those of the stream by name.
    """
    path = run.write()
    run.write_capture("c")
    shutil.copytree(path / "hosts/b", path / "hosts/c", dirs_exist_ok=True)
    counters = run.folder.host("c").counters
    values = {**(counted or {}), **(of_streams or {})}
    changed = [
        replace(each, final_value=values.get(key, each.final_value))
        for each in read_counters(counters) or []
        for key in (each.label if each.label in COUNTERS["b"] else each.counter_id,)
    ]
    write_counters(counters, changed)
    return path
