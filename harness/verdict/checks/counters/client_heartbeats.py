"""Check that only the client writes its heartbeat counter.

    client     now      now + 0.5 s      now + 1 s       each keepalive interval
    driver     ^ first command           reads it, and frees what a silent client had

A driver that writes the counter again keeps dead clients alive. It writes it once when the client
begins, so the first interval may be short. Source: Aeron 1.53.
"""

import numpy as np

from windtunnel.harness.artifact.host.counter_sample import CounterFacts
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.evidence_contents import HostCounters
from windtunnel.harness.verdict.core.finding import Finding, failed, finding_of, passed, present
from windtunnel.harness.verdict.core.virtual import is_virtual
from windtunnel.harness.verdict.views.interruptions import clock_steps

WRITTEN = "heartbeats_of_clients"

INTERVAL_MS = 500
"""Keepalive interval of a client. Source: Aeron 1.53, not configured in any scenario."""
_NS_PER_MS = 1_000_000
SLACK_MS = 50
"""Tolerance of an interval: a client reads the clock before and after its other work."""


def heartbeats_of_clients(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    """The heartbeat counter of each client has its ids, and in a simulation changes each 500 ms,
    and not more often.
    """
    hosts = [each.name for each in present(evidence.case).hosts]
    return [finding_of(WRITTEN, each, _host, evidence, each) for each in hosts]


def _host(evidence: Evidence, host: str) -> Finding:
    counted = present(evidence.host_counters(host))
    where = (evidence.name_of(evidence.folder.host(host).counter_samples),)
    clients = [each for each in counted.counters if each.type_id == counter_key.CLIENT_HEARTBEAT]
    problems = [_misnamed(each) for each in clients]
    if is_virtual(evidence.case):
        stepped_ns = [at_ns for at_ns, _ in clock_steps(evidence, host)]
        problems += [_wrong(counted, each, stepped_ns) for each in clients]
    for problem in filter(None, problems):
        return failed(WRITTEN, problem, host, evidence=where)
    text = f"each of {len(clients)} heartbeat counters was written only by its client"
    if not is_virtual(evidence.case):
        text = "not compared: in real time, clients can be late"
    return passed(WRITTEN, text, host, evidence=where)


def _misnamed(client: CounterFacts) -> str:
    """Return what is wrong with the ids of a client's heartbeat counter."""
    found = client.registration_id, client.owner_id, client.reference_id
    expected = client.registration_id, client.registration_id, 0
    if found != expected:
        names = "registration, owner and reference id"
        return f"the heartbeat counter of a client has {names} {found}, expected {expected}"
    return ""


def _wrong(counted: HostCounters, client: CounterFacts, stepped_ns: list[int]) -> str:
    """Return what is wrong with the heartbeats of a client. The value 0 is that of a closed one.

    The last heartbeat before a step of the clock and the first one after it are not compared.
    """
    samples = counted.samples_of(client)
    samples = samples[(samples["type_id"] == counter_key.CLIENT_HEARTBEAT) & (samples["value"] > 0)]
    steps = np.diff(samples["value"].astype(np.int64))
    since_ns, until_ns = samples["time_ns"][:-1] - INTERVAL_MS * _NS_PER_MS, samples["time_ns"][1:]
    is_over_step = np.zeros(len(steps), dtype=bool)
    for each_ns in stepped_ns:
        is_over_step |= (since_ns < each_ns) & (each_ns <= until_ns)
    steps = np.where(is_over_step, INTERVAL_MS, steps)
    if len(steps) and steps.min() < 0:
        return f"the heartbeat of client {client.registration_id} fell by {-int(steps.min())} ms"
    # The first value is the driver's, at the client's first command.
    short = steps[1:][steps[1:] < INTERVAL_MS - SLACK_MS]
    if len(short):
        return (
            f"the heartbeat of client {client.registration_id} changed {len(short)} times within "
            f"less than {INTERVAL_MS - SLACK_MS} ms, the shortest time was {int(short.min())} ms, "
            f"expected {INTERVAL_MS} ms"
        )
    return ""
