"""Synthetic cases and frames, and an engine to process them."""

import struct

import numpy as np

from windtunnel.harness.middlebox.engine import engine as rules_engine
from windtunnel.harness.middlebox.engine.state import DECISIONS, make_engine
from windtunnel.harness.scenario.resolved.case import (
    Case,
    CheckCase,
    HostCase,
    Payload,
    TrafficCase,
)
from windtunnel.harness.scenario.resolved.fault_case import FaultCase

A_TO_B, B_TO_A = 0, 1
STREAM_1, STREAM_2 = 1001, 1002
SESSION = 7001
INITIAL = -3
TERM_LENGTH = 65536
ENVELOPE = bytes(range(1, 43))
BILLION = 1_000_000_000


def fault(action, share=1.0, types=("DATA",), links=("a->b",), hold_ns=0, name="rule"):
    return FaultCase(
        id=name,
        links=links,
        frame_types=types,
        action=action,
        share_ppb=int(share * BILLION),
        hold_ns=hold_ns,
    )


def with_more(plain, **details):
    """Return a fault with further fields."""
    return plain.model_copy(update=details)


def case(*faults, seed=99, hosts=("10.64.0.3", "10.64.0.19")):
    streams = (("one", STREAM_1, 24325), ("two", STREAM_2, 24326))
    traffic = tuple(
        TrafficCase(
            id=name,
            ordinal=ordinal,
            stream_id=stream_id,
            from_host="a",
            to_host="b",
            publication="exclusive",
            channel=f"aeron:udp?endpoint={hosts[1]}:{port}",
            receive=f"aeron:udp?endpoint={hosts[1]}:{port}",
            port=port,
            reliable=True,
            term_length=TERM_LENGTH,
            mtu=1408,
            initial_term_id=INITIAL,
            initial_position=0,
            receiver_window_bytes=None,
            total_bytes=1 << 20,
            shortest_bytes=1,
            longest_bytes=8192,
        )
        for ordinal, (name, stream_id, port) in enumerate(streams)
    )
    return Case(
        name="made/up",
        about="made up",
        seed=seed,
        fidelity="netns",
        hosts=(HostCase(name="a", address=hosts[0]), HostCase(name="b", address=hosts[1])),
        payload=Payload(path="payload.bin", sha256="0" * 64, length_bytes=1),
        traffic=traffic,
        faults=faults,
        expect=(CheckCase(name="delivered_once", arguments={}),),
        wall_ns=10**9,
    )


def setup(stream=STREAM_1, session=SESSION, initial=INITIAL, term_length=TERM_LENGTH, active=None):
    active = initial if active is None else active
    return struct.pack(
        "<iBBHiiiiiiii", 40, 0, 0, 5, 0, session, stream, initial, active, term_length, 1408, 0
    )


def data(position, length=64, stream=STREAM_1, session=SESSION, kind=1, initial=INITIAL, fill=None):
    """Return a DATA frame, or a PAD with kind 0; `length` is its frame_length."""
    term = ((position // TERM_LENGTH + initial + (1 << 31)) % (1 << 32)) - (1 << 31)
    offset = position % TERM_LENGTH
    head = struct.pack("<iBBHiiiiq", length, 0, 0xC0, kind, offset, session, stream, term, 0)
    if kind == 0:
        return head
    content = bytes([(position // 32 if fill is None else fill) % 251]) * (length - 32)
    return head + content + bytes(-length % 32)


def heartbeat(position=0, stream=STREAM_1, session=SESSION):
    return data(position, 32, stream, session)[:0] + struct.pack(
        "<iBBHiiiiq", 0, 0, 0xC0, 1, position, session, stream, INITIAL, 0
    )


def status_message(stream=STREAM_1, session=SESSION, offset=0):
    return struct.pack("<iBBHiiiiiq", 36, 0, 0, 3, session, stream, INITIAL, offset, 4096, 5)


def nak(stream=STREAM_1, session=SESSION, offset=0):
    return struct.pack("<iBBHiiiii", 28, 0, 0, 2, session, stream, INITIAL, offset, 32)


class ByteEngine:
    """An engine with bytes as input and output."""

    def __init__(self, for_case, **settings):
        sizes = {"datagram_length_max": 2048, "envelope_length_max": 64, **settings}
        self.engine = make_engine(for_case, **sizes)

    def offer(self, datagram, link=A_TO_B, now_ns=0, envelope=ENVELOPE):
        """Offer one datagram. Returns what was sent at once as (link, headers, frames)."""
        buf = np.frombuffer(b"\xee" * 3 + envelope + datagram + b"\xee" * 5, dtype=np.uint8).copy()
        assert rules_engine.has_room(self.engine, len(envelope), len(datagram))
        rules_engine.offer(self.engine, buf, 3, len(envelope), len(datagram), link, now_ns)
        return self._empty()

    def release(self, now_ns):
        """Release what is due. Returns what was sent."""
        assert rules_engine.release(self.engine, now_ns)
        return self._empty()

    def frames(self, *arguments, **settings):
        """Like `offer`, but only the bytes of the frames."""
        return [sent[2] for sent in self.offer(*arguments, **settings)]

    @property
    def decisions(self):
        """Return the decision log so far, as records."""
        return self.engine.decisions[: self.engine.state[DECISIONS]]

    def _empty(self):
        outbox = self.engine.outbox
        sent = []
        for entry in outbox.datagrams[: outbox.counts[0]]:
            middle = entry["at"] + entry["envelope_length"]
            envelope = outbox.buf[entry["at"] : middle].tobytes()
            frames = outbox.buf[middle : middle + entry["length"]].tobytes()
            sent.append((int(entry["link"]), envelope, frames))
        outbox.counts[:] = 0
        return sent
