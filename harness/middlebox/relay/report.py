"""Writes the middlebox's packet counts and decisions to the run folder (ledger, decision log).

Decisions are appended as they are drained, so a killed relay loses only its last decisions.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import NAMES
from windtunnel.harness.artifact.middlebox.impairment_account import ImpairmentAccount
from windtunnel.harness.artifact.middlebox.ledger import (
    FrameAccount,
    Ledger,
    LinkAccount,
    PortAccount,
    RuleAccount,
)
from windtunnel.harness.middlebox.engine.state import DATAGRAMS_IN, DECISIONS, Engine
from windtunnel.harness.middlebox.impairment import impairment
from windtunnel.harness.middlebox.impairment.impairment import Impairments, is_on
from windtunnel.harness.middlebox.relay.relay_state import (
    COPIES,
    FOREIGN,
    LAG_BUCKET_NS,
    LAG_MAX,
    RECEIVED,
    SEND_FAILURES,
    STRAYS,
    UNLINKED,
    Relay,
)
from windtunnel.harness.middlebox.rules import CLASSES
from windtunnel.harness.scenario.resolved.case import Case


class DecisionLog:
    """The decision log file, to which the engine's buffered decisions are appended."""

    def __init__(self, path: Path, clock_offset_ns: int = 0) -> None:
        """Open the decision log. `clock_offset_ns` is added to the time of each decision.

        The offset is the epoch time at which the engine's clock is 0. The relay's engine runs on
        epoch time already.
        """
        self._file: BinaryIO = path.open("wb")
        self._clock_offset_ns = clock_offset_ns

    def drain(self, engine: Engine) -> None:
        """Append the engine's buffered decisions to the decision log, and empty the buffer."""
        count = int(engine.state[DECISIONS])
        if count:
            decisions = engine.decisions[:count].copy()
            decisions["time_ns"] += self._clock_offset_ns
            self._file.write(decisions.tobytes())
            self._file.flush()
            engine.state[DECISIONS] = 0

    def close(self) -> None:
        self._file.close()


def link_account(engine: Engine, link: int) -> LinkAccount:
    """Build the ledger entry with the engine's counts of datagrams and frames for one link
    direction.
    """
    received, sent, dropped, added = (int(each) for each in engine.datagrams[link, DATAGRAMS_IN:])
    frames = {
        NAMES[code]: FrameAccount(*(int(each) for each in engine.frames[link, index]))
        for index, code in enumerate(CLASSES)
        if engine.frames[link, index].any()
    }
    records = engine.held.records[engine.held.heap[: engine.held.counts[0]]]
    held = records["link"] == link
    return LinkAccount(
        datagrams_in=received,
        datagrams_out=sent,
        datagrams_dropped=dropped,
        datagrams_added=added,
        datagrams_held_at_end=int(held.sum()),
        frames=frames,
    )


def rule_accounts(engine: Engine, case: Case) -> dict[str, RuleAccount]:
    """Return how often each fault rule was evaluated, and how often it matched a frame."""
    return {
        fault.id: RuleAccount(eligible=int(eligible), selected=int(selected))
        for fault, (eligible, selected) in zip(case.faults, engine.tallies, strict=True)
    }


def ledger(engine: Engine, case: Case, relay: Relay, kernel_drops: Sequence[int]) -> Ledger:
    """Build the relay's ledger of packet counts. Packets that an interface refused do not count as
    sent.
    """
    links = {}
    hosts = [host.name for host in case.hosts]
    for link, name in enumerate(case.link_names):
        account = link_account(engine, link)
        counts = relay.link_counts[link]
        near = hosts.index(case.directions[link][0])
        account.send_failures = int(counts[SEND_FAILURES])
        if is_on(relay.impairments, link):
            account.impairments = impairment_account(relay.impairments, link)
            account.impairments.sent -= account.send_failures
        else:
            account.datagrams_out -= account.send_failures
        account.other_in = account.other_out = int(counts[FOREIGN])
        if not case.links:
            account.other_in += int(relay.counts[near, STRAYS])
        account.kernel_drops = kernel_drops[near]
        account.lag_ns = lag_quantiles(relay.lags[link], int(counts[LAG_MAX]))
        links[name] = account
    ports = dict(zip(hosts, map(port_account, relay.counts), strict=True)) if case.links else {}
    return Ledger(links, rule_accounts(engine, case), ports)


def port_account(counts: NDArray[np.int64]) -> PortAccount:
    """Build the ledger entry for the packets that arrived from one host."""
    return PortAccount(
        received=int(counts[RECEIVED]),
        strays=int(counts[STRAYS]),
        unlinked=int(counts[UNLINKED]),
        copies=int(counts[COPIES]),
    )


def impairment_account(impairments: Impairments, link: int) -> ImpairmentAccount:
    """Build the ledger entry with the packets that the impairments of a link direction lost,
    delayed or changed.
    """
    counts = impairments.counts[link]
    account = ImpairmentAccount(
        received=int(counts[impairment.RECEIVED]),
        lost=int(counts[impairment.LOST]),
        overflowed=int(counts[impairment.OVERFLOWED]),
        duplicated=int(counts[impairment.DUPLICATED]),
        corrupted=int(counts[impairment.CORRUPTED]),
        reordered=int(counts[impairment.REORDERED]),
        sent=int(counts[impairment.SENT]),
        waiting_at_end=int(impairments.state[link, impairment.IN_FLIGHT]),
        no_room=int(counts[impairment.NO_ROOM]),
        late_ns=lag_quantiles(
            impairments.lates[link], impairment.LATE_BUCKETS * impairment.LATE_BUCKET_NS
        ),
    )
    for place, code in enumerate(impairment.CLASSES):
        lost, doubled, damaged = (int(each) for each in impairments.frames[link, place])
        for found, count in (
            (account.frames_lost, lost),
            (account.frames_duplicated, doubled),
            (account.frames_corrupted, damaged),
        ):
            if count:
                found[NAMES[code]] = count
    return account


def lag_quantiles(buckets: NDArray[Any], longest_ns: int) -> dict[str, int]:
    """Return the median, 99th percentile and maximum of a histogram of the relay's latencies, or an
    empty dict if the histogram is empty.
    """
    total = int(buckets.sum())
    if total == 0:
        return {}
    reached = np.cumsum(buckets)
    found = {}
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        bucket = int(np.searchsorted(reached, share * total))
        end_ns = (bucket + 1) * LAG_BUCKET_NS
        found[name] = longest_ns if bucket == len(buckets) - 1 else min(end_ns, longest_ns)
    return {**found, "max": longest_ns}
