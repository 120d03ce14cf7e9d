"""Check of the windows of cc=cubic: each loss shrinks the window by a fifth, then it grows.

    packets   10 ... 75   60   61 ... 48        the first window is 10 packets of one MTU; a window
              first  ^ loss  growth  ^ loss     of n becomes max(1, 0.8 n), rounded down

The curve before the first loss begins with 0.8 of the maximum window: if that is 11 packets, the
second window is 9.

    growth    peak + 0.4 (t - K)^3 packets, t seconds after the loss, K = cbrt(0.2 peak / 0.4)

On real time a window may grow and shrink between two status messages, so only a simulation shows
each loss, the curve after it, and that the counter of the window ends with the last one.
"""

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.flow_control.acknowledgement import constant_window_bytes
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    failed,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.virtual import is_virtual
from windtunnel.harness.verdict.core.wire import status_messages

WINDOWS = "cubic_windows_shrink"

COUNTER = "rcv-cc-cubic-wnd"
PARAMETER, CUBIC = "cc", "cubic"
INITIAL_PACKETS = 10
B, C = 0.2, 0.4
SLACK_NS = 5_000_000
"""Tolerance for the time at which the driver computes a window, and for that of a loss."""
TCP_MODE = "AERON_CUBICCONGESTIONCONTROL_TCPMODE"
NS_PER_S = 1_000_000_000
LOSSES_MAX = 3
"""Maximum number of losses between two status messages. Each loss causes one in the same turn."""


def cubic_windows_shrink(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """With cc=cubic, the first window is ten packets, and each loss shrinks it by a fifth, to one
    packet at least; in a simulation, it then grows along the cubic curve.
    """
    wire, case = present(evidence.wire(traffic), evidence.case)
    where = (evidence.name_of(evidence.folder.capture(traffic.to_host)),)
    receive = parse_channel(traffic.receive)
    if receive.parameters.get(PARAMETER) != CUBIC:
        text = f"not applicable: the receiving channel does not have {PARAMETER}={CUBIC}"
        return Finding(WINDOWS, Outcome.INCONCLUSIVE, text, traffic.id, where)
    mtu = wire.facts.mtu
    messages = status_messages(wire.feedback_sent)
    windows = messages["window_bytes"].astype(np.int64)
    if len(windows) == 0:
        return inconclusive(WINDOWS, Missing(where[0], "has no status message"), traffic.id)
    known = constant_window_bytes(evidence, traffic, wire)
    most = wire.facts.term_length // 2 if known is None else known
    text = _violation(windows, mtu, most, is_known=known is not None)
    if not text and is_virtual(case):
        text = _too_short(windows, mtu, most)
    if not text and is_virtual(case) and not _is_tcp(evidence, traffic):
        text = _off_curve(messages["time_ns"].astype(np.int64), windows, mtu, most)
    if not text and is_virtual(case):
        text = _wrong_counter(evidence, traffic, int(windows[-1]))
    if text:
        return failed(WINDOWS, text, traffic.id, evidence=where)
    losses = int((np.diff(windows) < 0).sum())
    text = f"{len(windows)} windows of {windows.min()} to {windows.max()} bytes, {losses} of them "
    text += "shorter than the one before"
    return passed(WINDOWS, text, traffic.id, evidence=where)


def _violation(windows: NDArray[np.int64], mtu: int, most: int, *, is_known: bool) -> str:
    """Return what is wrong with the first window, or with the length of one. If the maximum is not
    known, `most` is half of a term, and the first window may be shorter.
    """
    first = min(INITIAL_PACKETS * mtu, max(1, most // mtu) * mtu, most)
    if windows[0] > first or (is_known and windows[0] != first):
        return f"the first window is {int(windows[0])} bytes, expected {first}"
    uneven = windows[(windows % mtu != 0) & (windows != most)]
    if len(uneven):
        return f"a window is {int(uneven[0])} bytes, expected packets of {mtu} bytes, or {most}"
    return ""


def _wrong_counter(evidence: Evidence, traffic: TrafficCase, last: int) -> str:
    """Return what is wrong with the window counter: it ends with the last window that was sent."""
    wire, counted = evidence.wire(traffic), evidence.host_counters(traffic.to_host)
    if isinstance(wire, Missing) or isinstance(counted, Missing):
        return ""
    found = counter_key.of_stream(
        counted.counters, counter_key.PER_IMAGE, wire.facts.session_id, wire.facts.stream_id
    )
    values = [each.final_value for each in found if each.label.startswith(COUNTER)]
    if len(values) == 1 and values[0] != last:
        return f"counter {COUNTER} is {values[0]}, but the last window that was sent is {last}"
    return ""


def _is_tcp(evidence: Evidence, traffic: TrafficCase) -> bool:
    subject = evidence.subject(traffic.to_host)
    return subject is not None and subject.settings.get(TCP_MODE) == "true"


def _off_curve(times_ns: NDArray[np.int64], windows: NDArray[np.int64], mtu: int, most: int) -> str:
    """Return what is wrong with the first window that is not on the curve after the last loss.

    Before the first loss, the driver continues a curve that begins with the maximum window.
    """
    limit = max(1, most // mtu)
    packets = np.minimum(-(-windows // mtu), limit).tolist()
    first_ns = int(times_ns[0])
    peak, loss_ns = limit, first_ns
    for now_ns, before, after in zip(times_ns[1:].tolist(), packets[:-1], packets[1:], strict=True):
        losses = [before, *_shrunk(before)]
        if after < before and after in losses:
            peak, loss_ns = losses[losses.index(after) - 1], now_ns
            continue
        low, high = (
            min(
                limit, peak + int(C * (max(0, passed_ns) / NS_PER_S - math.cbrt(peak * B / C)) ** 3)
            )
            for passed_ns in (now_ns - loss_ns - SLACK_NS, now_ns - loss_ns + SLACK_NS)
        )
        # The first windows may precede the first computation.
        least = packets[0] if now_ns - first_ns <= SLACK_NS else low - 1
        if not min(low - 1, least) <= after <= high + 1:
            return (
                f"the window is {after} packets, {now_ns - loss_ns} ns after the last loss with "
                f"{peak} packets, expected {low} to {high}"
            )
    return ""


def _too_short(windows: NDArray[np.int64], mtu: int, most: int) -> str:
    packets = -(-windows // mtu)
    limit = max(1, most // mtu)
    begin, has_changed = limit - int(B * limit), False
    for before, after in pairwise(packets.tolist()):
        is_begin = not has_changed and after == begin
        has_changed |= after != before
        if is_begin:
            continue
        if after < before and after not in _shrunk(before):
            return (
                f"the window shrank from {before} to {after} packets, expected {_shrunk(before)[0]}"
            )
    return ""


def _shrunk(packets: int) -> list[int]:
    """Return the windows after one loss, and after some more that may precede a status message."""
    found = []
    for _ in range(LOSSES_MAX):
        packets = max(1, int(packets * (1.0 - B)))
        found.append(packets)
    return found
