"""Check of the windows of cc=cubic: each loss shrinks the window by a fifth, then it grows.

    packets   10 ... 75   60   61 ... 48        the first window is 10 packets of one MTU; a window
              first  ^ loss  growth  ^ loss     of n becomes max(1, 0.8 n), rounded down

The curve before the first loss begins with 0.8 of the maximum window: if that is 11 packets, the
second window is 9.

    growth    peak + 0.4 (t - K)^3 packets, t seconds after the loss, K = cbrt(0.2 peak / 0.4)

On real time a window may grow and shrink before and between status messages, so only a simulation
shows the first window, each loss, the curve after it, and that the counter of the window ends with
the last one.
"""

import math
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.frames import SM_LENGTH, Frames
from windtunnel.harness.dissect.frames.layout import SM_FLAG_END_OF_STREAM
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.flow_control.acknowledgement import constant_window_bytes
from windtunnel.harness.verdict.checks.flow_control.status_message_checks import TIMEOUT_NS
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
from windtunnel.harness.verdict.core.wire import Wire, status_messages
from windtunnel.harness.verdict.views.feedback_limits import withheld
from windtunnel.harness.verdict.views.pauses import Pauses, disjoint, pauses_of
from windtunnel.harness.verdict.views.sessions import is_read_from_one_image

WINDOWS = "cubic_windows_shrink"

COUNTER = "rcv-cc-cubic-wnd"
INITIAL_PACKETS = 10
B, C = 0.2, 0.4
SLACK_NS = 5_000_000
"""Tolerance for the time at which the driver computes a window, and for that of a loss."""
TCP_MODE = "AERON_CUBICCONGESTIONCONTROL_TCPMODE"
NS_PER_S = 1_000_000_000
LOSSES_MAX = 3
"""Maximum number of losses between two status messages. Each loss causes one in the same turn."""


def cubic_windows_shrink(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """With cc=cubic, a window is a number of packets. In a simulation, the first one is ten
    packets, each loss shrinks it by a fifth, to one packet at least, and it then grows along the
    cubic curve.
    """
    wire, case = present(evidence.wire(traffic), evidence.case)
    where = (evidence.name_of(evidence.folder.capture(traffic.to_host)),)
    receive = parse_channel(traffic.receive)
    if not receive.is_cubic:
        text = "not applicable: the receiving channel does not have cc=cubic"
        return Finding(WINDOWS, Outcome.INCONCLUSIVE, text, traffic.id, where)
    mtu = wire.facts.mtu
    messages = status_messages(wire.feedback_sent)
    windows = messages["window_bytes"].astype(np.int64)
    if len(windows) == 0:
        return inconclusive(WINDOWS, Missing(where[0], "has no status message"), traffic.id)
    known = constant_window_bytes(evidence, traffic, wire)
    most = wire.facts.term_length // 2 if known is None else known
    virtual = is_virtual(case)
    text = _first_window(windows, mtu, most, is_known=known is not None) if virtual else ""
    text = text or _uneven_window(windows, mtu, most)
    if not text and virtual:
        text = _wrong_in_simulation(evidence, traffic, wire, max(1, most // mtu))
    if text:
        return failed(WINDOWS, text, traffic.id, evidence=where)
    losses = int((np.diff(windows) < 0).sum())
    text = f"{len(windows)} windows of {windows.min()} to {windows.max()} bytes, {losses} of them "
    text += "shorter than the one before"
    return passed(WINDOWS, text, traffic.id, evidence=where)


def _first_window(windows: NDArray[np.int64], mtu: int, most: int, *, is_known: bool) -> str:
    """Return what is wrong with the first window. If the maximum is not known, `most` is half of a
    term, and the first window may be shorter.
    """
    first = min(INITIAL_PACKETS * mtu, max(1, most // mtu) * mtu, most)
    if windows[0] > first or (is_known and windows[0] != first):
        return f"the first window is {int(windows[0])} bytes, expected {first}"
    return ""


def _uneven_window(windows: NDArray[np.int64], mtu: int, most: int) -> str:
    uneven = windows[(windows % mtu != 0) & (windows != most)]
    if len(uneven):
        return f"a window is {int(uneven[0])} bytes, expected packets of {mtu} bytes, or {most}"
    return ""


def _wrong_in_simulation(evidence: Evidence, traffic: TrafficCase, wire: Wire, limit: int) -> str:
    """Return what is wrong with the windows after the first one, or with their counter. `limit` is
    the maximum window in packets.
    """
    walk = partial(
        _wrong_window,
        present(pauses_of(evidence, traffic.to_host)),
        status_messages(wire.feedback_sent),
        wire.facts.mtu,
        limit,
        is_tcp=_is_tcp(evidence, traffic),
        may_rejoin=not is_read_from_one_image(evidence, traffic),
    )
    text = walk(disjoint([]))
    if text:
        text = walk(withheld(evidence, traffic, wire, SM_LENGTH))
    return text or _wrong_counter(evidence, traffic, wire)


def _wrong_window(
    pauses: Pauses,
    messages: Frames,
    mtu: int,
    limit: int,
    unsent: Pauses,
    *,
    is_tcp: bool,
    may_rejoin: bool,
) -> str:
    """Return what is wrong with the first window that is not on the curve after the last loss.

    Before the first loss, the driver continues a curve that begins with the maximum window. If
    status messages may have been withheld, it is unknown which curve it is, up to the next loss.
    A status message that repeats a window of one packet before its timeout may be due to a loss.
    """
    times_ns = messages["time_ns"].astype(np.int64).tolist()
    packets = np.minimum(-(-messages["window_bytes"].astype(np.int64) // mtu), limit).tolist()
    begin, has_changed = limit - int(B * limit), False
    curves: tuple[_Curve, ...] = (_Curve(limit, times_ns[0]),)
    for (since_ns, before), (now_ns, after) in pairwise(zip(times_ns, packets, strict=True)):
        losses, is_begin = [before, *_shrunk(before)], not has_changed and after == begin
        has_changed |= after != before
        if unsent.overlaps(since_ns, now_ns):
            curves = ()
        elif after < before and after in losses:
            curves = (_Curve(losses[losses.index(after) - 1], now_ns),)
        elif may_rejoin and after == packets[0]:
            curves = (_Curve(limit, now_ns),)
        elif after < before and not is_begin:
            return f"the window shrank from {before} to {after} packets, expected {losses[1]}"
        elif after == before and pauses.overlaps(now_ns - SLACK_NS, now_ns):
            # The driver sent the window from before its pause.
            continue
        elif curves and not is_tcp:
            if after == before == 1 and now_ns - since_ns < TIMEOUT_NS:
                curves = (curves[0], _Curve(1, now_ns))
            # The first windows may precede the first computation.
            least = packets[0] if now_ns - times_ns[0] <= SLACK_NS else limit
            text = _off_curve(after, least, curves, limit, now_ns)
            if text:
                return text
    return ""


@dataclass(frozen=True)
class _Curve:
    """The windows after a loss."""

    peak: int
    "The window before the loss, in packets."
    loss_ns: int

    def packets(self, now_ns: int) -> int:
        """Return the window at a time, which may exceed the maximum."""
        passed_s = max(0, now_ns - self.loss_ns) / NS_PER_S
        return self.peak + int(C * (passed_s - math.cbrt(self.peak * B / C)) ** 3)


def _off_curve(
    packets: int, least: int, curves: tuple[_Curve, ...], limit: int, now_ns: int
) -> str:
    """Return what is wrong with a window if it is shorter than `least` and all curves, or longer
    than all of them.
    """
    low = min(limit, *(each.packets(now_ns - SLACK_NS) for each in curves))
    high = min(limit, max(each.packets(now_ns + SLACK_NS) for each in curves))
    if min(low - 1, least) <= packets <= high + 1:
        return ""
    first = curves[0]
    return (
        f"the window is {packets} packets, {now_ns - first.loss_ns} ns after the last loss with "
        f"{first.peak} packets, expected {low} to {high}"
    )


def _wrong_counter(evidence: Evidence, traffic: TrafficCase, wire: Wire) -> str:
    """Return what is wrong with the window counter: it ends with the last window that was sent.
    After a status message with EOS, which may be the last one, it may have grown.
    """
    counted = evidence.counters_of_streams(traffic.to_host)
    if isinstance(counted, Missing):
        return ""
    facts = wire.facts
    found = counter_key.of_stream(
        counted.counters, counter_key.PER_IMAGE, facts.session_id, facts.stream_id
    )
    values = [each.final_value for each in found if each.label.startswith(COUNTER)]
    messages = status_messages(wire.feedback_sent)
    last, last_ns = int(messages["window_bytes"][-1]), int(messages["time_ns"][-1])
    is_done = bool(messages["flags"][-1] & SM_FLAG_END_OF_STREAM)
    if len(values) != 1 or values[0] == last or (is_done and values[0] > last):
        return ""
    if withheld(evidence, traffic, wire, SM_LENGTH).overlaps(last_ns, last_ns + 1):
        return ""
    return f"counter {COUNTER} is {values[0]}, but the last window that was sent is {last}"


def _is_tcp(evidence: Evidence, traffic: TrafficCase) -> bool:
    subject = evidence.subject(traffic.to_host)
    return subject is not None and subject.settings.get(TCP_MODE) == "true"


def _shrunk(packets: int) -> list[int]:
    """Return the windows after one loss, and after some more that may precede a status message."""
    found = []
    for _ in range(LOSSES_MAX):
        packets = max(1, int(packets * (1.0 - B)))
        found.append(packets)
    return found
