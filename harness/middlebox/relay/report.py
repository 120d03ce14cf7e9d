"""What a middlebox did, on its way to the run folder: the ledger, and the decision log.

Decisions are appended as they are drained, so that a killed relay leaves all but its last ones.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import NAMES
from windtunnel.harness.artifact.middlebox.impairment_account import WeatherAccount
from windtunnel.harness.artifact.middlebox.ledger import (
    FrameAccount,
    Ledger,
    LinkAccount,
    PortAccount,
    RuleAccount,
)
from windtunnel.harness.middlebox.engine.state import DATAGRAMS_IN, DECISIONS, Engine
from windtunnel.harness.middlebox.impairment import impairment as skies
from windtunnel.harness.middlebox.impairment.impairment import Weather, is_on
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
    """The file of decisions, grown from the engine's buffer."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("wb")

    def drain(self, engine: Engine) -> None:
        """Move the engine's decisions to the file."""
        count = int(engine.state[DECISIONS])
        if count:
            self._file.write(engine.decisions[:count].tobytes())
            self._file.flush()
            engine.state[DECISIONS] = 0

    def close(self) -> None:
        self._file.close()


def link_account(engine: Engine, link: int) -> LinkAccount:
    """The engine's account of a link direction."""
    received, sent, dropped, added = (int(each) for each in engine.datagrams[link, DATAGRAMS_IN:])
    frames = {
        NAMES[code]: FrameAccount(*(int(each) for each in engine.frames[link, index]))
        for index, code in enumerate(CLASSES)
        if engine.frames[link, index].any()
    }
    waiters = engine.waiting.waiters[engine.waiting.heap[: engine.waiting.counts[0]]]
    held = waiters["link"] == link
    return LinkAccount(
        datagrams_in=received,
        datagrams_out=sent,
        datagrams_dropped=dropped,
        datagrams_added=added,
        datagrams_held_at_end=int(held.sum()),
        frames=frames,
    )


def rule_accounts(engine: Engine, case: Case) -> dict[str, RuleAccount]:
    """How often each rule of the case had to decide, and how often it struck."""
    return {
        fault.id: RuleAccount(tried=int(tried), struck=int(struck))
        for fault, (tried, struck) in zip(case.faults, engine.tallies, strict=True)
    }


def ledger(engine: Engine, case: Case, relay: Relay, kernel_drops: Sequence[int]) -> Ledger:
    """The whole account of a relay; what an interface refused to send has not left."""
    links = {}
    hosts = [host.name for host in case.hosts]
    for link, name in enumerate(case.link_names):
        account = link_account(engine, link)
        counts = relay.link_counts[link]
        near = hosts.index(case.directions[link][0])
        account.send_failures = int(counts[SEND_FAILURES])
        if is_on(relay.weather, link):
            account.weather = weather_account(relay.weather, link)
            account.weather.sent -= account.send_failures
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
    """What came in from one host, in packets."""
    return PortAccount(
        received=int(counts[RECEIVED]),
        strays=int(counts[STRAYS]),
        unlinked=int(counts[UNLINKED]),
        copies=int(counts[COPIES]),
    )


def weather_account(weather: Weather, link: int) -> WeatherAccount:
    """What the relay's weather did to the datagrams of a link direction."""
    counts = weather.counts[link]
    account = WeatherAccount(
        received=int(counts[skies.RECEIVED]),
        lost=int(counts[skies.LOST]),
        overflowed=int(counts[skies.OVERFLOWED]),
        duplicated=int(counts[skies.DUPLICATED]),
        corrupted=int(counts[skies.CORRUPTED]),
        reordered=int(counts[skies.REORDERED]),
        sent=int(counts[skies.SENT]),
        waiting_at_end=int(weather.state[link, skies.UNDER_WAY]),
        no_room=int(counts[skies.NO_ROOM]),
        late_ns=lag_quantiles(weather.lates[link], skies.LATE_BUCKETS * skies.LATE_BUCKET_NS),
    )
    for place, code in enumerate(skies.CLASSES):
        lost, doubled, damaged = (int(each) for each in weather.frames[link, place])
        for found, count in (
            (account.frames_lost, lost),
            (account.frames_duplicated, doubled),
            (account.frames_corrupted, damaged),
        ):
            if count:
                found[NAMES[code]] = count
    return account


def lag_quantiles(buckets: NDArray[Any], longest_ns: int) -> dict[str, int]:
    """Median, 99th percentile and maximum of the lags; none if nothing was forwarded."""
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
