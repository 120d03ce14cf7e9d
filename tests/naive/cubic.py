"""Reference implementation of CUBIC congestion control by its formulas, in packets and seconds."""

import math


class Cubic:
    """One image's window; `turn` is one duty cycle of the conductor."""

    def __init__(
        self, window_max: int, mtu: int, rtt_ns: int, now_ns: int, *, is_tcp: bool = False
    ) -> None:
        self.window_max, self.mtu, self.is_tcp = window_max, mtu, is_tcp
        self.packets_max = max(1, window_max // mtu)
        self.packets = min(10, self.packets_max)
        self.peak, self.lost_ns, self.updated_ns = self.packets_max, now_ns, now_ns
        self.interval_ns, self.rtt_ns = rtt_ns, rtt_ns

    def turn(self, now_ns: int, is_loss: bool, has_consumed: bool) -> tuple[int, bool]:
        """Return (window in bytes, whether to send a status message immediately)."""
        is_forced = False
        if is_loss:
            is_forced, self.peak, self.lost_ns = True, self.packets, now_ns
            self.packets = max(1, math.floor(self.packets * 0.8))
        elif self.packets < self.packets_max and now_ns > self.updated_ns + self.interval_ns:
            self.packets, self.updated_ns = self.grown(now_ns), now_ns
        elif self.packets == 1 and has_consumed:
            is_forced = True
        return min(self.packets * self.mtu, self.window_max), is_forced

    def grown(self, now_ns: int) -> int:
        """Return the window of the CUBIC curve, or of TCP if that is larger."""
        seconds = (now_ns - self.lost_ns) / 1e9
        k = (self.peak * 0.2 / 0.4) ** (1 / 3)
        curve = min(self.peak + math.trunc(0.4 * (seconds - k) ** 3), self.packets_max)
        if self.is_tcp and curve < self.peak:
            round_trips = seconds * 1e9 / self.rtt_ns
            tcp = math.trunc(self.peak * 0.8 + 3 * 0.2 / 1.8 * round_trips)
            curve = max(curve, min(tcp, self.packets_max))
        return max(1, curve)
