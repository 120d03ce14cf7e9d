"""Reference implementation of datagrams in flight: a FIFO list."""

HEADER = 16 + 64
ALIGNMENT = 8


class Wire:
    """One direction."""

    def __init__(self):
        self.waiting = []
        self.departures = []

    def depart(self, now_ns, apart_ns):
        """Return when the next datagram departs: not before the earlier ones, and apart."""
        earliest = [each + apart_ns for each in self.departures]
        self.departures.append(max([now_ns, *earliest]))
        return self.departures[-1]

    def put(self, due_ns, datagram):
        self.waiting.append((due_ns, bytes(datagram)))

    def arrived(self, now_ns):
        """Remove and return the datagrams that are due."""
        found = [each for each in self.waiting if each[0] <= now_ns]
        self.waiting = self.waiting[len(found) :]
        return found

    @property
    def used(self):
        """Return the number of bytes in use, as the ring counts them."""
        return sum(
            (HEADER + len(datagram) - 64 + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
            for _, datagram in self.waiting
        )
