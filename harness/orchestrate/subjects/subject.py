"""Command lines of all processes of a run, except for the capture tool.

    driver      python -m windtunnel.driver --dir D      (`ours`; other peers differ)
    publisher   python -m windtunnel.harness.workload publisher --case F --traffic ID ...
    subscriber  python -m windtunnel.harness.workload subscriber ... (the same)
    recorder    python -m windtunnel.harness.workload recorder ... (the same)
    saboteur    python -m windtunnel.harness.workload saboteur ... --sabotage NAME (the same)
    relay       python -m windtunnel.harness.middlebox --case F --interface IF ... --out DIR
    simulator   python -m windtunnel.harness.simulator run --case F --out DIR --memory DIR
    sampler     python -m windtunnel.harness.capture.counters --aeron-dir D --out DIR --interval 5ms

The subject is the driver under test together with its workloads. Windtunnel's programs print
`ready` when they are ready. Workloads print `progress <bytes>/<total>`, and subscribers `joined`
when they have an image. Their exit code is 0 on success, 1 if the subject failed, 3 if the workload
itself failed (for example because of a full disk), 124 if the only failure is a timeout, or 127 if
the subject does not support what the scenario requires.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

READY = "ready"
PROGRESS = "progress "
JOINED = "joined"
UNSUPPORTED_EXIT_CODE = 127
CANNOT_START_EXIT_CODES = (126, 127)
"""Exit codes of a driver that cannot be executed, as set by a shell, by `env` or by the linker."""

SAMPLE_INTERVAL = "5ms"

SABOTAGE_ROLES = {
    "skip-message": "publisher",
    "flip-byte": "subscriber",
    "lying-counter": "saboteur",
    "nak-when-unreliable": "saboteur",
}
"""The role of the process that performs each sabotage."""

SABOTAGES = tuple(SABOTAGE_ROLES)


JUDGED_SETTINGS = (
    "WINDTUNNEL_NAK_ALL_GAPS",
    "WINDTUNNEL_GAP_FILL_DATAGRAMS",
    "WINDTUNNEL_GAP_FILL_DELAY",
    "WINDTUNNEL_RETRANSMIT_RANGES",
)
"""Settings of Windtunnel's driver that change what the judge requires. The manifest records
them.
"""

DELETE_DIRECTORY_ON_START = {"AERON_DIR_DELETE_ON_START": "true"}
"""Environment variables of a driver that replaces a killed driver whose heartbeat is recent."""

PYTHON = "{python}"
DIRECTORY = "{dir}"
LIBRARIES = "{libraries}"
"""Placeholders in a subject's command lines and variables, which are filled in for each host."""

WORKLOAD = ("-m", "windtunnel.harness.workload")
"""Interpreter arguments that start Windtunnel's workloads, which can attach to any driver."""


@dataclass(frozen=True)
class Subject:
    """A driver under test: the command lines and variables of the driver and its workloads."""

    name: str
    driver: tuple[str, ...]
    """Command line of the driver, with the placeholders `PYTHON`, `DIRECTORY` and `LIBRARIES`."""

    workload: tuple[str, ...] = WORKLOAD
    """Interpreter arguments that start a workload."""

    environment: dict[str, str] = field(default_factory=dict)
    """Environment variables of all of the subject's processes, with the same placeholders."""

    reads_environment: bool = True
    """Whether the driver reads Aeron's settings from environment variables."""

    libraries: Path | None = None
    """Folder, below the runs folder, with files that every host needs, or None."""

    missing: str = ""
    """The reason why this machine cannot start the subject, or an empty string if it can."""

    mutant: str = ""
    """Name of the mutant planted in the driver to test the judge, or an empty string."""

    image: str = ""
    """The container image that the driver runs in, or an empty string if it runs on the host."""

    kind: str = ""
    """Which driver an image contains, as in the manifest, or an empty string if it has no image."""

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
        """Return a workload's command line. If the stream has several publishers or subscribers,
        `host` selects one.
        """
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
    """The drivers under test on both sides of a stream."""

    publisher: Subject
    """The subject on the host that publishes the first stream."""

    subscriber: Subject
    """The subject on every other host."""

    @property
    def missing(self) -> str:
        """The reasons why this machine cannot start the pair of drivers, or an empty string if it
        can.
        """
        found = {f"{each.name}: {each.missing}" for each in self if each.missing}
        return "; ".join(sorted(found))

    @property
    def mutant(self) -> str:
        """Name of the mutant (planted defect) in either driver of the pair, or an empty string."""
        return self.publisher.mutant or self.subscriber.mutant

    @property
    def name(self) -> str:
        return f"{self.publisher.name} to {self.subscriber.name}"

    def __iter__(self) -> Iterator[Subject]:
        return iter((self.publisher, self.subscriber))


OURS = Subject(
    name="ours",
    driver=(PYTHON, "-m", "windtunnel.driver", "--dir", DIRECTORY),
    # Hosts share one machine, so each driver has one thread that sleeps briefly instead of
    # spinning. Otherwise the relay or another host would starve.
    environment={
        "AERON_THREADING_MODE": "SHARED",
        "AERON_SHARED_IDLE_STRATEGY": "sleep-ns",
        "AERON_SHARED_IDLE_STRATEGY_INIT_ARGS": "50us",
        # The middlebox handles single datagrams, so segmentation offload must be off.
        "WINDTUNNEL_UDP_OFFLOAD": "false",
    },
)

OURS_WITH_OURS = Pair(OURS, OURS)


def sabotage_arguments(role: str, sabotage: str) -> list[str]:
    """Return the command-line arguments that enable a deliberate error (sabotage), or an empty list
    if processes with this role do not cause this error.
    """
    return ["--sabotage", sabotage] if SABOTAGE_ROLES.get(sabotage) == role else []


def group_may_use(argv: Sequence[str]) -> list[str]:
    """Return the command line of a driver whose files its group may use, too."""
    return ["sh", "-c", 'umask 007; exec "$@"', "sh", *argv]


def relay_command(python: str, *, case: str, interfaces: Sequence[str], out: str) -> list[str]:
    """Return the command line that starts the middlebox's relay."""
    return [
        *(python, "-m", "windtunnel.harness.middlebox"),
        *("--case", case),
        *(word for each in interfaces for word in ("--interface", each)),
        *("--out", out),
    ]


def simulator_command(
    python: str, *, case: str, out: str, memory: str, sabotage: str, real: Sequence[str] = ()
) -> list[str]:
    """Return the command line that simulates a run. The hosts in `real` have the real C driver."""
    argv = [
        *(python, "-m", "windtunnel.harness.simulator", "run"),
        *("--case", case),
        *("--out", out),
        *("--memory", memory),
        *(word for each in real for word in ("--real", each)),
    ]
    return [*argv, "--sabotage", sabotage] if sabotage else argv


def sampler_command(
    python: str, *, directory: str, out: str, after_ms: int = 0, sees_driver: bool = True
) -> list[str]:
    """Return the command line that starts the sampler of a driver's counters.

    `after_ms` is the time at which the previous driver was killed, in epoch milliseconds, or 0. A
    driver in a container of its own cannot be seen among the processes of its host.
    """
    argv = [
        *(python, "-m", "windtunnel.harness.capture.counters"),
        *("--aeron-dir", directory),
        *("--out", out),
        *("--interval", SAMPLE_INTERVAL),
    ]
    argv += [] if sees_driver else ["--hidden-driver"]
    return [*argv, "--after", str(after_ms)] if after_ms else argv
