"""The command lines of everything that a run starts, apart from the capture tool.

    driver      python -m windtunnel.driver --dir D      (ours; other peers have their own commands)
    publisher   python -m windtunnel.harness.workload publisher --case F --traffic ID ...
    subscriber  python -m windtunnel.harness.workload subscriber ... (the same)
    recorder    python -m windtunnel.harness.workload recorder ... (the same)
    saboteur    python -m windtunnel.harness.workload saboteur ... --sabotage NAME (the same)
    relay       python -m windtunnel.harness.middlebox --case F --interface IF ... --out DIR
    simulator   python -m windtunnel.harness.simulator run --case F --out DIR --memory DIR
    sampler     python -m windtunnel.harness.capture.counters --aeron-dir D --out DIR --interval 5ms

The subject is the driver together with the workloads that speak to it. Our programs print `ready`
when they are; workloads print `progress <bytes>/<total>`; they exit with 0, with 1 if the subject
failed them, with 3 if they failed by themselves, as on a full disk, with 124 if all that failed is
that nobody answered in time, or with 127 if it cannot do what the scenario asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

READY = "ready"
PROGRESS = "progress "
UNSUPPORTED_EXIT_CODE = 127
CANNOT_START_EXIT_CODES = (126, 127)
"""How a driver ends that this machine cannot execute: as of a shell, `env`, or the linker."""

SAMPLE_INTERVAL = "5ms"

SABOTAGE_ROLES = {
    "skip-message": "publisher",
    "flip-byte": "subscriber",
    "lying-counter": "saboteur",
    "nak-when-unreliable": "saboteur",
}
"""Which process of the subject commits each sabotage."""

SABOTAGES = tuple(SABOTAGE_ROLES)


TAKE_DIRECTORY = {"AERON_DIR_DELETE_ON_START": "true"}
"""Of a driver that follows one that was killed, whose heartbeat looks alive for a while."""

PYTHON = "{python}"
DIRECTORY = "{dir}"
LIBRARIES = "{libraries}"
"""What stands in a subject's words for things that differ from place to place."""

WORKLOAD = ("-m", "windtunnel.harness.workload")
"""Our publisher and subscriber, which can attach to any driver."""


@dataclass(frozen=True)
class Subject:
    """What is tested: how its driver and its workloads are started."""

    name: str
    driver: tuple[str, ...]
    """The driver's command line, with `PYTHON`, `DIRECTORY` and `LIBRARIES` left open."""

    workload: tuple[str, ...] = WORKLOAD
    """Arguments after the interpreter."""

    environment: dict[str, str] = field(default_factory=dict)
    """Variables of all its processes, with the same left open."""

    reads_environment: bool = True
    """Whether its driver takes Aeron's settings from the environment."""

    libraries: Path | None = None
    """A folder below that of the runs whose files it needs in every place; None if it needs none.
    """

    missing: str = ""
    """Why it cannot be started on this machine; empty if it can."""

    has_archive: bool = False
    """Whether our archive may be started beside its driver: it is part of the subject."""

    mutant: str = ""
    """Name of the defect that was planted in it to test the judge; empty if there is none."""

    def driver_command(self, python: str, directory: str, libraries: str = "") -> list[str]:
        return [_filled_in(word, python, directory, libraries) for word in self.driver]

    def variables(self, python: str, directory: str, libraries: str = "") -> dict[str, str]:
        return {
            name: _filled_in(value, python, directory, libraries)
            for name, value in self.environment.items()
        }

    def workload_command(
        self,
        python: str,
        role: str,
        *,
        case: str,
        traffic: str,
        directory: str,
        out: str,
        host: str = "",
    ) -> list[str]:
        """Return the command line of a workload; `host` tells which end of several it is."""
        return [
            *(python, *self.workload, role),
            *("--case", case),
            *("--traffic", traffic),
            *(("--host", host) if host else ()),
            *("--aeron-dir", directory),
            *("--out", out),
        ]


def _filled_in(word: str, python: str, directory: str, libraries: str) -> str:
    found = word.replace(PYTHON, python).replace(DIRECTORY, directory)
    return found.replace(LIBRARIES, libraries)


@dataclass(frozen=True)
class Pair:
    """Who is tested against whom: the subject on each side of a stream."""

    publisher: Subject
    """On the host that the first stream comes from."""

    subscriber: Subject
    """On every other host."""

    @property
    def missing(self) -> str:
        """Why this pair cannot be had on this machine; empty if it can."""
        found = {f"{each.name}: {each.missing}" for each in self if each.missing}
        return "; ".join(sorted(found))

    @property
    def mutant(self) -> str:
        """Name of the defect that was planted in either; empty if there is none."""
        return self.publisher.mutant or self.subscriber.mutant

    @property
    def name(self) -> str:
        return f"{self.publisher.name} to {self.subscriber.name}"

    def __iter__(self) -> Iterator[Subject]:
        return iter((self.publisher, self.subscriber))


OURS = Subject(
    name="ours",
    driver=(PYTHON, "-m", "windtunnel.driver", "--dir", DIRECTORY),
    # Two hosts share one machine here: one thread a driver, and short sleeps instead of spinning,
    # so that neither the relay nor the other host starves.
    environment={
        "AERON_THREADING_MODE": "SHARED",
        "AERON_SHARED_IDLE_STRATEGY": "sleep-ns",
        "AERON_SHARED_IDLE_STRATEGY_INIT_ARGS": "50us",
        # The link treats each datagram by itself, so each must cross it by itself.
        "WINDTUNNEL_UDP_OFFLOAD": "false",
    },
    has_archive=True,
)

OURS_WITH_OURS = Pair(OURS, OURS)


def sabotage_arguments(role: str, sabotage: str) -> list[str]:
    """Return the arguments that order a workload to be at fault, if that is its role's fault."""
    return ["--sabotage", sabotage] if SABOTAGE_ROLES.get(sabotage) == role else []


def relay_command(python: str, *, case: str, interfaces: Sequence[str], out: str) -> list[str]:
    return [
        *(python, "-m", "windtunnel.harness.middlebox"),
        *("--case", case),
        *(word for each in interfaces for word in ("--interface", each)),
        *("--out", out),
    ]


def simulator_command(python: str, *, case: str, out: str, memory: str, sabotage: str) -> list[str]:
    argv = [
        *(python, "-m", "windtunnel.harness.simulator", "run"),
        *("--case", case),
        *("--out", out),
        *("--memory", memory),
    ]
    return [*argv, "--sabotage", sabotage] if sabotage else argv


def sampler_command(python: str, *, directory: str, out: str, after_ms: int = 0) -> list[str]:
    """`after_ms` is when the driver before this one was killed, or 0."""
    argv = [
        *(python, "-m", "windtunnel.harness.capture.counters"),
        *("--aeron-dir", directory),
        *("--out", out),
        *("--interval", SAMPLE_INTERVAL),
    ]
    return [*argv, "--after", str(after_ms)] if after_ms else argv
