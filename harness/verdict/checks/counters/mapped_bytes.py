"""Check that the counter `Bytes currently mapped` counts the log buffers that a driver has mapped.

    start        cnc.dat and the loss report                                  first value
    streams      each log buffer is mapped, and unmapped when it is freed     rises by its length
    shut-down    each remaining log buffer is unmapped                        first value

Only the driver `ours` is judged: with Aeron's C driver 1.53, the counter of a receiving host had
counted each image's log buffer twice.
"""

from itertools import pairwise

import numpy as np

from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    failed,
    finding_of,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.core.virtual import is_virtual

COUNTED = "mapped_bytes_counted"


def mapped_bytes_counted(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    """`Bytes currently mapped` of the driver `ours` counts each log buffer while it is mapped, in a
    simulation.
    """
    hosts = [each.name for each in present(evidence.case).hosts]
    return [finding_of(COUNTED, each, _host, evidence, each, traffics) for each in hosts]


def _host(evidence: Evidence, host: str, traffics: list[TrafficCase]) -> Finding:
    subject = evidence.subject(host)
    if subject is not None and subject.is_aerons:
        return passed(COUNTED, f"not compared: {subject.driver} counts differently", host)
    if not is_virtual(evidence.case):
        text = "not compared: in real time, the last sample precedes the driver's end"
        return passed(COUNTED, text, host)
    files = evidence.folder.host(host)
    counted, held = present(evidence.host_counters(host), evidence.log_index(host))
    where = (evidence.name_of(files.counters), evidence.name_of(files.log_index))
    samples = counted.samples
    is_own = samples["counter_id"] == counter_key.BYTES_MAPPED
    is_own &= samples["type_id"] == counter_key.SYSTEM
    values = samples["value"][is_own].astype(np.int64).tolist()
    if not values:
        return inconclusive(COUNTED, Missing(where[0], "has no sample of the counter"), host)
    logs = sum(each.length for each in held)
    # Of streams that follow each other, one log buffer may be mapped while another one is unmapped.
    streams = [each for each in traffics if host in (*each.publishers, each.to_host)]
    can_hide = len(held) > len({(each.id, host == each.to_host) for each in streams})
    can_hide |= _follow_each_other(evidence, host, streams)
    problem = _wrong(values, logs, can_hide=can_hide)
    if problem:
        text = f"{problem}, according to the {len(held)} log buffers of {logs} bytes"
        return failed(COUNTED, text, host, evidence=where)
    return passed(COUNTED, f"{logs} bytes of {len(held)} log buffers", host, evidence=where)


def _follow_each_other(evidence: Evidence, host: str, streams: list[TrafficCase]) -> bool:
    """Return whether a publication or image of a host began after another one had ended."""
    spans = []
    for each in streams:
        own = evidence.subscriber(each) if host == each.to_host else evidence.publisher(each)
        if not isinstance(own, Missing):
            spans.append((own.started_ns, own.ended_ns))
    return bool(spans) and max(spans)[0] > min(ended_ns for _, ended_ns in spans) > 0


def _wrong(values: list[int], logs: int, *, can_hide: bool) -> str:
    """Return what is wrong with the values of the counter over time. `logs` is the length of all
    log buffers of the run. If `can_hide`, the counter may have stayed although one was mapped.
    """
    changes = [after - before for before, after in pairwise(values)]
    rose = sum(each for each in changes if each > 0)
    if min(values) < values[0]:
        return f"the counter fell to {min(values)}, expected at least its first value {values[0]}"
    if values[-1] != values[0]:
        return f"the counter ended at {values[-1]}, expected its first value {values[0]}"
    if rose > logs or (rose < logs and not can_hide) or (logs and not rose):
        return f"the counter rose by {rose}, expected {logs}"
    return ""
