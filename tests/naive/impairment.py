"""Reference implementation of the impairments, packet by packet."""

from statistics import NormalDist

from windtunnel.harness.middlebox.engine.prf import philox
from windtunnel.harness.scenario.schema.units import BILLION

_ONE = 1 << 32
_TAG = 0x77 << 24


class NaiveImpairment:
    """One link direction; `sent` holds (due_ns, order, bytes), in no order."""

    def __init__(self, impairments, seed, link):
        self.impairments, self.seed, self.link = impairments, seed, link
        self.state = 0
        self.ordinal = 0
        self.last_ns = 0
        self.since = 0
        self.in_flight = []
        self.sent = []
        self.lost, self.doubled, self.overflowed, self.damaged = 0, 0, 0, 0

    def take(self, packet, envelope_length, now_ns):
        self.ordinal += 1
        loss_draw, move_draw, copy_draw, _ = self._draw(0)
        lost, is_copied = (
            self._loses(loss_draw, move_draw),
            self._below(copy_draw, self.impairments.duplicate_ppb),
        )
        if lost and not is_copied:
            self.lost += 1
            return
        if is_copied and not lost:
            self.doubled += 1
            loss_draw, move_draw, _, _ = self._draw(1)
            if self._loses(loss_draw, move_draw):
                self.lost += 1
            else:
                self._enqueue(packet, envelope_length, now_ns, 1)
        self._enqueue(packet, envelope_length, now_ns, 0)

    def leave(self, now_ns):
        """Remove and return the packets due by a time, in order."""
        due = sorted(each for each in self.in_flight if each[0] <= now_ns)
        self.in_flight = [each for each in self.in_flight if each[0] > now_ns]
        return [packet for _, _, packet in due]

    def _enqueue(self, packet, envelope_length, now_ns, copy):
        impairments = self.impairments
        if impairments.queue_packets and len(self.in_flight) >= impairments.queue_packets:
            self.overflowed += 1
            return
        damage, place, late, order = self._draw(2 + copy)
        due_ns = self._due_ns(len(packet), now_ns, late, order)
        packet = bytearray(packet)
        if self._below(damage, impairments.corrupt_ppb):
            self.damaged += 1
            bit = place % (8 * (len(packet) - envelope_length))
            packet[envelope_length + bit // 8] ^= 1 << bit % 8
        self.sent.append(due_ns)
        self.in_flight.append((due_ns, len(self.sent), bytes(packet)))

    def _due_ns(self, length, now_ns, late, order):
        impairments = self.impairments
        if impairments.reorder_gap:
            if self.since >= impairments.reorder_gap - 1 and self._below(
                order, impairments.reorder_ppb
            ):
                self.since = 0
                return 0
            self.since += 1
        jitter_ns = self._jitter_ns(late)
        due_ns = now_ns + max(0, impairments.delay_ns + jitter_ns)
        if impairments.rate_bits_per_s:
            due_ns = max(due_ns, self.last_ns) + length * 8 * BILLION // impairments.rate_bits_per_s
            self.last_ns = due_ns
        elif jitter_ns == 0:
            due_ns = self.last_ns = max(due_ns, self.last_ns)
        return due_ns

    def _jitter_ns(self, late):
        share = (late * 4096 // _ONE + 0.5) / 4096
        kind = self.impairments.distribution
        if kind == "uniform":
            shape = 2 * share - 1
        elif kind == "normal":
            shape = NormalDist().inv_cdf(share)
        else:
            shape = (1 / (1 - share) ** (1 / 3) - 1.5) * 4 / 3
        return round(max(-4.0, min(4.0, shape)) * self.impairments.jitter_ns)

    def _loses(self, loss_draw, move_draw):
        loss = self.impairments.loss
        if loss is None:
            return False
        shares = loss.shares_ppb
        if loss.model == "iid":
            return self._below(loss_draw, shares[0])
        if loss.model == "gilbert-elliott":
            worse, better, bad_loss, good_loss = shares
            lost = self._below(loss_draw, bad_loss if self.state else good_loss)
            if self._below(move_draw, better if self.state else worse):
                self.state = 1 - self.state
            return lost
        p13, p31, p32, p23, p14 = shares
        transitions = {
            0: ((p14, 3), (p13, 2)),
            1: ((p23, 2),),
            2: ((p32, 1), (p31, 0)),
            3: ((BILLION, 0),),
        }[self.state]
        reached = 0
        for share, target in transitions:
            reached += (share << 32) // BILLION
            if move_draw < reached:
                self.state = target
                break
        return self.state in (2, 3)

    def _below(self, drawn, share_ppb):
        return drawn < (share_ppb << 32) // BILLION

    def _draw(self, purpose):
        ordinal = self.ordinal - 1
        return philox(
            ordinal, 0, purpose, _TAG | self.link, self.seed & 0xFFFFFFFF, self.seed >> 32
        )
