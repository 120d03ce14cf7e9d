"""A synthetic load of an archive, which executes each command at once and reports given times."""

from windtunnel.harness.artifact.run.bench_board import FAULT_TEXTS, Command, Fault, State
from windtunnel.harness.bench.loads import MeasurementError

DONE = {Command.RECORD: State.RECORDED, Command.REPLAY: State.REPLAYED}


class FakeBoard:
    def __init__(self, loads):
        self._loads = loads
        self.state = State.STARTING if loads.never is State.CONNECTED else State.CONNECTED
        self.message_count = self.duration_ns = 0

    @property
    def order(self):
        return self._loads.orders[-1]

    @order.setter
    def order(self, order):
        loads = self._loads
        loads.orders.append(order)
        if loads.never is not DONE[order]:
            self.state = DONE[order]
        self.message_count = loads.message_count - (order is loads.lost_at)
        is_slow = len(loads.orders) <= loads.slow_turns
        self.duration_ns = loads.slow_ns if is_slow else loads.durations_ns[order]


class FakeLoads:
    """Replaces the class `Loads` and its only instance."""

    def __init__(
        self, *, record_ns=1_000_000, replay_ns=1_000_000, lost_at=None, fault=Fault.NONE,
        never=None, slow_turns=0, slow_ns=0,
    ):  # fmt: skip
        self.durations_ns = {Command.RECORD: record_ns, Command.REPLAY: replay_ns}
        self.lost_at, self.fault, self.never = lost_at, fault, never
        self.slow_turns, self.slow_ns = slow_turns, slow_ns
        self.orders, self.given, self.message_count = [], {}, 0
        self.board = FakeBoard(self)

    def __call__(self, case, folder, **given):
        self.given = given
        self.message_count = int(given["more"][-1])
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def wait(self, condition, limit_s, problem):
        if self.fault is not Fault.NONE and self.orders:
            raise MeasurementError(
                f"archive: {FAULT_TEXTS[self.fault].format(expected=3, found=4)}"
            )
        if not condition():
            raise MeasurementError(f"{problem} within {limit_s:g} s")
