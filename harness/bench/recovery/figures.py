"""What the recovery benchmark measures: paths with losses, pairs of drivers, and figures.

    path      a scenario below scenarios/recovery
    setup     the drivers of both sides: ours or the real C driver, the latter with its default
              NAK delay, or with the best one that a sweep finds for the path
    figure    one value of a path: of ours alone, or its ratio to the better C driver's

Most figures are measured on virtual time, on which ours and the real C driver run alike, so they
depend on the seeds only. Where the recovery modes could cost processor time, the same scenario is
also measured between network namespaces.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from windtunnel.harness.artifact.run.result_row import ResultRow
from windtunnel.harness.bench.measure import Reading
from windtunnel.harness.orchestrate.fidelity import NETNS, SIM, Fidelity

OUR_DRIVER, REAL_DRIVER = "ours", "pyaeron"
TAIL = "tail"
TAIL_SEEDS = 200
"""Number of streams in each round of the tail, of which every one must be complete."""


@dataclass(frozen=True)
class Setup:
    """The drivers of both sides of a stream."""

    name: str
    publisher: str
    subscriber: str
    title: str
    """What tables and charts call it."""


OURS = Setup("ours", OUR_DRIVER, OUR_DRIVER, "ours")
C = Setup("c", REAL_DRIVER, REAL_DRIVER, "C")
C_TUNED = Setup("c-tuned", REAL_DRIVER, REAL_DRIVER, "C tuned")
OUR_RECEIVER = Setup("our-receiver", REAL_DRIVER, OUR_DRIVER, "C sends, ours receives")
OUR_SENDER = Setup("our-sender", OUR_DRIVER, REAL_DRIVER, "ours sends, C receives")


@dataclass(frozen=True)
class RecoveryPath:
    """A scenario, and the drivers with which it is measured."""

    name: str
    setups: tuple[Setup, ...]
    fidelity: Fidelity = SIM
    round_trip_ns: int = 0
    """Round-trip time from which the sweep derives NAK delays; 0 if NAK delays have no effect."""

    @property
    def case(self) -> str:
        return self.name if self.fidelity == SIM else f"{self.name}-{self.fidelity}"

    @property
    def clock(self) -> str:
        return "virtual" if self.fidelity == SIM else "real"


_MS = 1_000_000
_BOTH = (OURS, C, C_TUNED)
PATHS = (
    RecoveryPath("long-path", (*_BOTH, OUR_RECEIVER, OUR_SENDER), round_trip_ns=250 * _MS),
    RecoveryPath("fast-path", _BOTH, round_trip_ns=80 * _MS),
    RecoveryPath("bursts", _BOTH, round_trip_ns=40 * _MS),
    RecoveryPath("short-path", _BOTH, round_trip_ns=_MS // 10),
    RecoveryPath("no-loss", (OURS, C)),
    RecoveryPath("short-path", (OURS, C), NETNS),
    RecoveryPath("no-loss", (OURS, C), NETNS),
    RecoveryPath("group", (OURS, C)),
    RecoveryPath("overtaken", (OURS, C)),
    RecoveryPath(TAIL, (OURS,)),
)


TITLES = {
    "transfer": "time until the last message arrived",
    "naks-per-gap": "NAKs per gap",
    "resent-per-lost": "bytes sent again per byte lost",
    "repair-p50": "time from gap to repair, median",
    "repair-p99": "time from gap to repair, p99",
    "goodput": "goodput",
    "latency-p99": "latency of messages, p99",
    "missing-per-lost": "messages missing per message lost",
    "complete": "share of streams that were complete",
}
"""What a page calls the values."""


@dataclass(frozen=True)
class RecoveryFigure:
    """One value of a path with its limits. With `is_ratio`, the value is the ratio of ours to that
    of the better C driver, or for `setup` other than ours, to that of ours.
    """

    case: str
    value: str
    """Key of the value in a reading."""
    unit: str
    is_more_better: bool
    floor: float
    goal: float
    is_ratio: bool = False
    setup: Setup = OURS

    @property
    def name(self) -> str:
        setup = "" if self.setup is OURS else f"-{self.setup.name}"
        return f"{self.case}{setup}-{self.value}"

    @property
    def title(self) -> str:
        """What a page calls the figure: its value, and the drivers if they are not the same."""
        setup = "" if self.setup is OURS else f" ({self.setup.title})"
        return TITLES[self.value] + setup

    @property
    def needs_all(self) -> bool:
        """Whether the figure is that of a stream of which every message should arrive."""
        return self.value != "missing-per-lost"


def _less(case: str, value: str, unit: str, floor: float, goal: float) -> RecoveryFigure:
    return RecoveryFigure(case, value, unit, False, floor, goal)


def _ratio(case: str, value: str, unit: str, floor: float, goal: float) -> RecoveryFigure:
    return RecoveryFigure(case, value, unit, value == "goodput", floor, goal, is_ratio=True)


FIGURES = (
    _less("long-path", "transfer", "s", 8.0, 5.0),
    _less("long-path", "naks-per-gap", "", 2.0, 1.2),
    _less("long-path", "resent-per-lost", "", 1.1, 1.04),
    _less("long-path", "repair-p50", "s", 0.6, 0.3),
    _less("long-path", "repair-p99", "s", 1.2, 0.8),
    RecoveryFigure("long-path", "goodput", "MB/s", True, 0.6, 0.9, True, OUR_RECEIVER),
    RecoveryFigure("long-path", "resent-per-lost", "", False, 4.0, 2.0, setup=OUR_SENDER),
    _ratio("fast-path", "goodput", "MB/s", 5.0, 10.0),
    _ratio("bursts", "goodput", "MB/s", 5.0, 10.0),
    *(
        _ratio(case, value, unit, floor, 1.0)
        for case in ("short-path", "no-loss", "short-path-netns", "no-loss-netns")
        for value, unit, floor in (("goodput", "MB/s", 0.97), ("latency-p99", "ms", 1.05))
    ),
    _ratio("group", "naks-per-gap", "", 1.0, 0.5),
    _ratio("group", "resent-per-lost", "", 1.0, 0.5),
    _less("overtaken", "missing-per-lost", "", 1.1, 1.0),
    RecoveryFigure(TAIL, "complete", "of 1", True, 1.0, 1.0),
)


@dataclass(frozen=True)
class RecoveryRow:
    """A figure with the medians of each setup, and whether it meets its limits."""

    figure: RecoveryFigure
    clock: str
    medians: dict[str, float] = field(default_factory=dict)
    incomplete: dict[str, int] = field(default_factory=dict)
    """For each setup, the number of runs in which not every message arrived."""
    void_count: int = 0
    """Number of void readings of the path. With one, no limit is known to hold."""
    reached: float | None = None
    """The value or the ratio that is compared with the limits, or None if it was not measured."""

    @property
    def holds(self) -> bool | None:
        return self._meets(self.figure.floor)

    @property
    def reaches_goal(self) -> bool | None:
        return self._meets(self.figure.goal)

    def _meets(self, limit: float) -> bool | None:
        if self.reached is None or self.void_count:
            return None
        if self.figure.is_more_better:
            return self.reached >= limit
        return self.reached <= limit


def values_of(rows: Sequence[ResultRow]) -> dict[str, float]:
    """Return the values of one run by name. Those of a group are of all its members: counts are
    added, and the slowest member counts.

    Retransmits to a group are the same for each member. Unknown values are omitted.
    """
    lost = sum(each.lost_bytes or 0 for each in rows)
    gaps = sum(each.gaps or 0 for each in rows)
    published = sum(each.published_messages or 0 for each in rows)
    delivered = sum(each.delivered_messages or 0 for each in rows)
    frames = sum(each.lost_frames or 0 for each in rows)
    values: dict[str, float | None] = {
        "complete": float(published > 0 and delivered == published),
        "transfer": _most(rows, lambda row: row.finished_ns, 1e-9),
        "goodput": _least(rows, lambda row: row.reached_bytes_per_s, 1e-6),
        "latency-p99": _most(rows, lambda row: row.latency_p99_ns, 1e-6),
        "repair-p50": _most(rows, lambda row: row.repair_p50_ns, 1e-9),
        "repair-p99": _most(rows, lambda row: row.repair_p99_ns, 1e-9),
        "naks-per-gap": sum(each.naks or 0 for each in rows) / gaps if gaps else None,
        "resent-per-lost": _most(rows, lambda row: row.resent_bytes, 1 / lost) if lost else None,
        "missing-per-lost": (published - delivered) / frames if frames else None,
    }
    return {name: value for name, value in values.items() if value is not None}


def _known(
    rows: Sequence[ResultRow], value: Callable[[ResultRow], float | None], scale: float
) -> list[float]:
    return [found * scale for each in rows if (found := value(each)) is not None]


def _most(
    rows: Sequence[ResultRow], value: Callable[[ResultRow], float | None], scale: float
) -> float | None:
    return max(_known(rows, value, scale), default=None)


def _least(
    rows: Sequence[ResultRow], value: Callable[[ResultRow], float | None], scale: float
) -> float | None:
    return min(_known(rows, value, scale), default=None)


def compare(readings: Iterable[Reading]) -> list[RecoveryRow]:
    """Compute each figure from the valid readings. The median of the tail is the share of complete
    streams.
    """
    found = list(readings)
    return [_row(found, figure) for figure in FIGURES]


def _row(readings: Sequence[Reading], figure: RecoveryFigure) -> RecoveryRow:
    path = next(each for each in PATHS if each.case == figure.case)
    of_path = [each for each in readings if each.case == path.case]
    valid = [each for each in of_path if not each.void]
    medians: dict[str, float] = {}
    incomplete: dict[str, int] = {}
    for setup in path.setups:
        of_setup = [each for each in valid if each.driver == setup.name]
        values = [each.values[figure.value] for each in of_setup if figure.value in each.values]
        if values:
            medians[setup.name] = sum(values) / len(values) if path.name == TAIL else median(values)
            incomplete[setup.name] = sum(not each.values["complete"] for each in of_setup)
    voids = len(of_path) - len(valid)
    return RecoveryRow(figure, path.clock, medians, incomplete, voids, _reached(figure, medians))


def _reached(figure: RecoveryFigure, medians: dict[str, float]) -> float | None:
    value = medians.get(figure.setup.name)
    if value is None or not figure.is_ratio:
        return value
    if figure.setup is not OURS:
        base = medians.get(OURS.name)
    else:
        peers = [medians[each.name] for each in (C, C_TUNED) if each.name in medians]
        best = max if figure.is_more_better else min
        base = best(peers) if peers else None
    return value / base if base else None
