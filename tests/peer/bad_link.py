"""A link on loopback with faults of the middlebox's engine, for two drivers on one machine.

    publisher  <-->  [near end | engine | far end]  <-->  receiver

An end receives and sends the datagrams of one side. Each side sees the other at one constant
address, as drivers require: data is sent from the far end's outlet only, and a receiver's feedback
from the socket that the publisher sends to. Datagrams are forwarded only in `turn`, so a link needs
no thread, and its faults depend on the seed and not on time.
"""

import socket
import time
from dataclasses import dataclass

import numpy as np

from windtunnel.harness.artifact.middlebox.decision import DROP, NO_POSITION
from windtunnel.harness.artifact.middlebox.frame_class import CODES
from windtunnel.harness.middlebox.engine import engine as rules_engine
from windtunnel.harness.middlebox.engine.held_frames import NEVER, next_due_ns
from windtunnel.harness.middlebox.engine.outbox import COUNT, empty
from windtunnel.harness.middlebox.engine.state import BATCH_MAX, DECISIONS, make_engine
from windtunnel.harness.middlebox.relay.report import link_account
from windtunnel.harness.middlebox.rules import CLASSES
from windtunnel.harness.scenario.resolved.case import Case, HostCase, Payload, TrafficCase

LOOPBACK = "127.0.0.1"
TO_FAR, TO_NEAR = 0, 1
DATAGRAM_LENGTH_MAX = 2_048
RECEIVE_BUFFER_BYTES = 4 << 20
FRAME_COLUMNS = ("frames_in", "frames_out", "dropped", "duplicated", "held", "swapped")
FRAME_COLUMNS += ("forged", "damaged_from", "damaged_into", "other_streams")


@dataclass
class LinkEnd:
    """One end of a link. A peer that is not given is the source of the first datagram."""

    inlet: socket.socket
    outlet: socket.socket
    peer: tuple[str, int] | None = None

    @property
    def address(self):
        return "{}:{}".format(*self.inlet.getsockname())

    def close(self):
        self.inlet.close()
        self.outlet.close()


def unicast_end(peer=None):
    """Return an end with one socket, which has its own port."""
    both = _socket()
    both.bind((LOOPBACK, 0))
    return LinkEnd(both, both, peer)


def multicast_end(joined, sent_to):
    """Return an end that receives from one group and sends to another; both are (address, port)."""
    inlet, outlet = _socket(), _socket()
    inlet.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    inlet.bind(joined)
    member = socket.inet_aton(joined[0]) + socket.inet_aton(LOOPBACK)
    inlet.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    outlet.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(LOOPBACK))
    outlet.bind((LOOPBACK, 0))
    return LinkEnd(inlet, outlet, sent_to)


def _socket():
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    opened.setblocking(False)
    return opened


class BadLink:
    """Two ends with an engine between them; `turn` forwards datagrams that arrived or are due."""

    def __init__(self, near, far, case, now_ns=time.monotonic_ns):
        self.ends = near, far
        self._now_ns = now_ns
        self._engine = make_engine(
            case, datagram_length_max=DATAGRAM_LENGTH_MAX, envelope_length_max=0
        )
        self._received = np.zeros(DATAGRAM_LENGTH_MAX + 1, np.uint8)

    def close(self):
        for end in self.ends:
            end.close()

    def turn(self):
        for direction, end in enumerate(self.ends):
            for _ in range(BATCH_MAX):
                try:
                    length, source = end.inlet.recvfrom_into(self._received)
                except BlockingIOError:
                    break
                assert length <= DATAGRAM_LENGTH_MAX
                if direction == TO_FAR and end.inlet is end.outlet:
                    end.peer = end.peer or source
                self._offer(length, direction)
        assert rules_engine.release(self._engine, self._now_ns())
        self._flush()

    def _offer(self, length, direction):
        assert rules_engine.has_room(self._engine, 0, length)
        rules_engine.offer(self._engine, self._received, 0, 0, length, direction, self._now_ns())
        self._flush()

    def _flush(self):
        outbox = self._engine.outbox
        for entry in outbox.datagrams[: outbox.counts[COUNT]]:
            end = self.ends[1 - entry["link"]]
            datagram = outbox.buf[entry["at"] : entry["at"] + entry["length"]]
            assert end.peer, "feedback for a side that has sent nothing yet"
            end.outlet.sendto(datagram.data, end.peer)
        empty(outbox)

    @property
    def decisions(self):
        """The faults so far, a DECISION each."""
        return self._engine.decisions[: self._engine.state[DECISIONS]]

    def frames(self, direction, kind):
        """Return the counts of a frame class in a direction."""
        row = self._engine.frames[direction, CLASSES.index(CODES[kind])]
        return dict(zip(FRAME_COLUMNS, row.tolist(), strict=True))

    def lost_at_first(self):
        """Return positions of data and padding frames that were dropped when first sent."""
        faulty = self.decisions
        first = faulty[(faulty["action"] == DROP) & (faulty["attempt"] == 1)]
        return set(first["position"].tolist())

    @property
    def fault_count(self):
        """The number of faults of data and padding frames; a frame with two faults counts twice."""
        return int((self.decisions["position"] != NO_POSITION).sum())

    @property
    def is_empty(self):
        """Whether no frame is held back."""
        return next_due_ns(self._engine.held) == NEVER

    def is_balanced(self):
        """Whether each datagram was dropped by a fault, forwarded or held, in both directions."""
        accounts = [link_account(self._engine, direction) for direction in (TO_FAR, TO_NEAR)]
        return all(
            each.datagrams_in + each.datagrams_added
            == each.datagrams_out + each.datagrams_dropped + each.datagrams_held_at_end
            for each in accounts
        )


def link_case(stream_id, term_length, faults, seed):
    """Return an engine's case with one stream and its faults."""
    traffic = TrafficCase(
        id="one", ordinal=0, stream_id=stream_id, from_host="a", to_host="b",
        publication="exclusive", channel="", receive="", port=1, reliable=True,
        term_length=term_length, mtu=1_408, initial_term_id=None, initial_position=0,
        receiver_window_bytes=None, total_bytes=1, shortest_bytes=1, longest_bytes=1,
    )  # fmt: skip
    return Case(
        name="peers", about="", seed=seed, fidelity="netns",
        hosts=(HostCase(name="a", address=LOOPBACK), HostCase(name="b", address=LOOPBACK)),
        payload=Payload(path="", sha256="", length_bytes=1), traffic=(traffic,),
        faults=tuple(faults), expect=(), wall_ns=1,
    )  # fmt: skip
