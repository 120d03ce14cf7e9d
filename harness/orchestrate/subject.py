"""The command lines of everything that a run starts, apart from the capture tool.

    driver      python -m driver --dir D
    publisher   python -m harness.workload publisher --case F --traffic ID --aeron-dir D --out DIR
    subscriber  python -m harness.workload subscriber ... (the same)
    saboteur    python -m harness.workload saboteur ... --sabotage NAME (the same)
    relay       python -m harness.middlebox --case F --left IF --right IF --out DIR
    sampler     python -m harness.capture.counters --aeron-dir D --out DIR --interval 5ms

The subject is the driver together with the workloads that speak to it. Our programs print `ready`
when they are; workloads print `progress <bytes>/<total>`; they exit with 0, with 1 if the subject
failed them, or with 127 if it cannot do what the scenario asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from harness.scenario.model import Traffic

READY = "ready"
PROGRESS = "progress "
UNSUPPORTED_EXIT_CODE = 127
SAMPLE_INTERVAL = "5ms"

SABOTAGE_ROLES = {
    "skip-message": "publisher",
    "flip-byte": "subscriber",
    "lying-counter": "saboteur",
    "nak-when-unreliable": "saboteur",
}
"""Which process of the subject commits each sabotage."""

SABOTAGES = tuple(SABOTAGE_ROLES)


@dataclass(frozen=True)
class Mutation:
    """A planted defect of the driver, and where it runs."""

    name: str
    side: Literal["sender", "receiver", "both"]
    """The hosts that publish, those that subscribe, or all."""

    environment: dict[str, str]
    """What makes a process use the mutated driver."""

    def afflicts(self, host: str, streams: Sequence[Traffic]) -> bool:
        """Whether the processes of a host run the mutated driver."""
        publishes = any(each.from_host == host for each in streams)
        subscribes = any(each.to_host == host for each in streams)
        return {"sender": publishes, "receiver": subscribes, "both": True}[self.side]


@dataclass(frozen=True)
class Subject:
    """What is tested: how its driver and its workloads are started."""

    name: str
    driver: tuple[str, ...]
    """Arguments after the interpreter; the driver's directory follows as `--dir`."""

    workload: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    mutation: Mutation | None = None
    """The defect that was planted in it to test the judge."""

    def environment_at(self, host: str, streams: Sequence[Traffic]) -> dict[str, str]:
        """The variables of its processes on a host."""
        if self.mutation is None or not self.mutation.afflicts(host, streams):
            return self.environment
        return {**self.environment, **self.mutation.environment}

    def driver_command(self, python: str, directory: str) -> list[str]:
        return [python, *self.driver, "--dir", directory]

    def workload_command(
        self, python: str, role: str, *, case: str, traffic: str, directory: str, out: str
    ) -> list[str]:
        return [
            *(python, *self.workload, role),
            *("--case", case),
            *("--traffic", traffic),
            *("--aeron-dir", directory),
            *("--out", out),
        ]


OURS = Subject(
    name="ours",
    driver=("-m", "driver"),
    workload=("-m", "harness.workload"),
    # Two hosts share one machine here: one thread a driver, and short sleeps instead of spinning,
    # so that neither the relay nor the other host starves.
    environment={
        "AERON_THREADING_MODE": "SHARED",
        "AERON_SHARED_IDLE_STRATEGY": "sleep-ns",
        "AERON_SHARED_IDLE_STRATEGY_INIT_ARGS": "50us",
        # The link treats each datagram by itself, so each must cross it by itself.
        "WINDTUNNEL_UDP_OFFLOAD": "false",
    },
)


def sabotage_arguments(role: str, sabotage: str) -> list[str]:
    """Return the arguments that order a workload to be at fault, if that is its role's fault."""
    return ["--sabotage", sabotage] if SABOTAGE_ROLES.get(sabotage) == role else []


def relay_command(python: str, *, case: str, left: str, right: str, out: str) -> list[str]:
    return [
        *(python, "-m", "harness.middlebox"),
        *("--case", case),
        *("--left", left),
        *("--right", right),
        *("--out", out),
    ]


def sampler_command(python: str, *, directory: str, out: str) -> list[str]:
    return [
        *(python, "-m", "harness.capture.counters"),
        *("--aeron-dir", directory),
        *("--out", out),
        *("--interval", SAMPLE_INTERVAL),
    ]
