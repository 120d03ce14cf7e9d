"""Reference implementation of the middlebox's delay queue: a list sorted on each access."""


class NaiveDelayQueue:
    def __init__(self, slots):
        self.slots = slots
        self.held = []
        self.order = 0

    def add(self, due_ns, name):
        """Add an item; return False if the queue is full."""
        if len(self.held) == self.slots:
            return False
        self.held.append((due_ns, self.order, name))
        self.order += 1
        return True

    def pop(self):
        """Remove the item that is due first, and return its name."""
        self.held.sort()
        return self.held.pop(0)[2]

    def next_due_ns(self):
        return min(self.held)[0] if self.held else 2**63 - 1
