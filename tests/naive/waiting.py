"""The obvious twin of the middlebox's waiting room: a list that is sorted whenever it is asked."""


class NaiveWaiting:
    def __init__(self, slots):
        self.slots = slots
        self.held = []
        self.order = 0

    def take(self, due_ns, name):
        """Whether there was room."""
        if len(self.held) == self.slots:
            return False
        self.held.append((due_ns, self.order, name))
        self.order += 1
        return True

    def pop(self):
        """The name of the one that is due first."""
        self.held.sort()
        return self.held.pop(0)[2]

    def next_due_ns(self):
        return min(self.held)[0] if self.held else 2**63 - 1
