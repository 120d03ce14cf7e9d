"""Program that floods a driver's ports with hostile packets at a constant rate.

    python -m windtunnel.harness.fuzz.flood --port P --rate N --seed N

Half of the packets are mutated frames of the stream that is measured, a quarter are SETUPs of new
sessions, and a quarter are status messages without a session. They come from many ports. Every
second session repeats its SETUP once, at the interval at which publishers do. The program prints
`sending` and then, every 0.2 s, the packets sent per second, until it is killed.
"""

import argparse
import random
import socket
import time
from collections import deque

import numpy as np

from windtunnel.harness.fuzz.budgets import CONTROL_OFFSET
from windtunnel.harness.fuzz.checked_streams import LOOPBACK
from windtunnel.harness.fuzz.frames import Forger, Target, frames_of
from windtunnel.harness.fuzz.latency_stream import SESSION_ID, STREAM_ID, TERM_ID

BURST = 20
PORTS = 64
"""Number of source ports."""
REPETITION_S = 0.1
"""Interval at which publishers repeat SETUPs."""


class Sessions:
    """Ids of forged sessions. Every second one is returned twice, an interval apart."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._count = 0
        self._waiting: deque[tuple[float, int]] = deque()

    def next_id(self, now_s: float) -> int:
        """Return the session id of the next SETUP."""
        if self._waiting and self._waiting[0][0] <= now_s:
            return self._waiting.popleft()[1]
        session_id = self._chance.randrange(1 << 31)
        self._count += 1
        if self._count % 2 == 0:
            self._waiting.append((now_s + REPETITION_S, session_id))
        return session_id


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m windtunnel.harness.fuzz.flood")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--rate", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(PORTS)]
    guarded = np.array([(SESSION_ID, STREAM_ID)], np.int64)
    forger = Forger(given.seed, guarded, BURST // 2)
    sound = Target(LOOPBACK, given.port, SESSION_ID, STREAM_ID, TERM_ID)
    frames = frames_of(sound, 0)
    forger.batch(frames)
    print("sending", flush=True)
    began_s, told_s, sent = time.monotonic(), time.monotonic(), 0
    sessions = Sessions(chance)
    while True:
        batch = [(datagram, given.port) for datagram in forger.batch(frames)]
        for _ in range(BURST // 4):
            session_id = sessions.next_id(time.monotonic())
            new = Target(LOOPBACK, given.port, session_id, STREAM_ID, TERM_ID)
            batch.append((frames_of(new, 0)[3], given.port))
            reader = Target(LOOPBACK, given.port, 0, STREAM_ID + 1, TERM_ID)
            batch.append((frames_of(reader, 0)[4], given.port + CONTROL_OFFSET))
        for datagram, port in batch:
            sockets[chance.randrange(PORTS)].sendto(datagram, (LOOPBACK, port))
        sent += len(batch)
        now_s = time.monotonic()
        if now_s - told_s > 0.2:
            print(f"rate {sent / (now_s - began_s):.0f}", flush=True)
            told_s = now_s
        ahead_s = began_s + sent / given.rate - now_s
        if ahead_s > 0:
            time.sleep(ahead_s)


if __name__ == "__main__":
    main()
