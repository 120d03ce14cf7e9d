"""An application in a resolved case, with the addresses of hosts filled in."""

import signal
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

from pydantic import Field

from windtunnel.harness.scenario.applications.application import (
    CPUS_MAX,
    EXIT_CODE_MAX,
    FOLDER_LENGTH_MAX,
    LOG_TEXT_LENGTH_MAX,
    LOG_TEXTS_MAX,
    MEMORY_BYTES_MAX,
    PROCESSES_MAX,
    WITHIN_NS_MAX,
    Application,
    Driver,
    Signal,
)
from windtunnel.harness.scenario.applications.placeholder import fill_in
from windtunnel.harness.scenario.schema.part import Part
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.table import Name

MILLI = 1000
SIGNAL_BASE = 128
"""A shell reports a program that signal N has ended with this number plus N as its exit code."""


class ApplicationCase(Part):
    """An application in a resolved case."""

    id: Name
    host: Name
    command: tuple[str, ...]
    """The program and its arguments. Directories and the interpreter are still placeholders."""
    env: dict[str, str] = Field(default_factory=dict)
    driver: Driver = "shared"
    image: str = ""
    """Its container image, or an empty string for that of the harness."""
    build: str = ""
    """The folder of the scenario from which its image is built, or an empty string."""
    working_dir: str = Field(default="", max_length=FOLDER_LENGTH_MAX)
    """The folder of its image in which it starts, or an empty string for that of the image."""
    user: str = Field(default="", max_length=21)
    """The user that it is in its container, or an empty string for root."""
    memory_bytes: int = 0
    milli_cpus: int = 0
    processes_max: int = 0
    """Limits of its container, or 0 for none."""
    ready_log: str = ""
    """Text in the line that shows that it is ready, or empty if nothing waits for it."""
    ready_within_ns: int = 0
    stop_signal: Signal = "TERM"
    stop_within_ns: int
    exit_code: int | None = None
    """The expected exit code, or None for 0, or 128 + N for the stop signal."""
    log_never: tuple[str, ...] = ()
    round_trips_ns: tuple[int, int, int] = (0, 0, 0)
    """The most that half, 99 % and all of the round trips that it reports may take, or 0."""
    ends_by_itself: bool = False
    ends_at_any_time: bool = False
    """Whether it may both end by itself and be asked to end, in a lab that a program controls."""

    def filled_in(self, values: Mapping[str, str]) -> Self:
        """Return a copy whose command and variables have these values for their placeholders."""
        command = tuple(fill_in(each, values) for each in self.command)
        env = {name: fill_in(value, values) for name, value in self.env.items()}
        return self.model_copy(update={"command": command, "env": env})

    def expected_exit_codes(self, *, asked: bool) -> tuple[int, ...]:
        """Return the exit codes with which it may end, as a shell reports them. `asked` is whether
        it was asked to end.
        """
        if self.exit_code is not None:
            return (self.exit_code,)
        if self.ends_by_itself or not asked:
            return (0,)
        return 0, SIGNAL_BASE + signal.Signals[f"SIG{self.stop_signal}"]

    def may_end_with(self, code: int, *, asked: bool) -> bool:
        """Return whether it may end with an exit code, which is -N if signal N has ended it."""
        codes = self.expected_exit_codes(asked=asked)
        return (code if code >= 0 else SIGNAL_BASE - code) in codes


def application_case(application: Application, addresses: Mapping[str, str]) -> ApplicationCase:
    """Convert an application of a scenario file to the form used in a resolved case."""
    ready, stop, expect = application.ready, application.stop, application.expect
    return ApplicationCase(
        id=application.id,
        host=application.host,
        command=application.command,
        env=application.env,
        driver=application.driver,
        image=application.image or "",
        build=application.build or "",
        working_dir=application.working_dir or "",
        user=application.user or "",
        memory_bytes=application.limits.memory_bytes or 0,
        milli_cpus=round((application.limits.cpus or 0) * MILLI),
        processes_max=application.limits.processes or 0,
        ready_log=ready.log if ready else "",
        ready_within_ns=ready.within_ns if ready else 0,
        stop_signal=stop.signal,
        stop_within_ns=stop.within_ns,
        exit_code=expect.exit_code,
        log_never=expect.log_never,
        round_trips_ns=(
            expect.round_trips.p50_most_ns or 0,
            expect.round_trips.p99_most_ns or 0,
            expect.round_trips.longest_most_ns or 0,
        ),
        ends_by_itself=expect.ends_by_itself,
    ).filled_in(addresses)


def application_case_problems(
    application: ApplicationCase, path: Path, hosts: Sequence[str]
) -> Iterator[Problem]:
    """Yield a problem for each value in a case.json that no resolved scenario has."""
    if application.host not in hosts:
        found = application.host[:80]
        yield Problem((*path, "host"), f"expected one of {', '.join(hosts)}, found {found!r}")
    for name, value, least, most in (
        ("ready_within_ns", application.ready_within_ns, 0, WITHIN_NS_MAX),
        ("stop_within_ns", application.stop_within_ns, 1, WITHIN_NS_MAX),
        ("exit_code", application.exit_code or 0, 0, EXIT_CODE_MAX),
        ("log_never", len(application.log_never), 0, LOG_TEXTS_MAX),
        ("memory_bytes", application.memory_bytes, 0, MEMORY_BYTES_MAX),
        ("milli_cpus", application.milli_cpus, 0, int(CPUS_MAX * MILLI)),
        ("processes_max", application.processes_max, 0, PROCESSES_MAX),
    ):
        if not least <= value <= most:
            yield Problem((*path, name), f"expected {least} to {most}, found {value}")
    for text in (application.ready_log, *application.log_never):
        if len(text) > LOG_TEXT_LENGTH_MAX:
            expected = f"expected at most {LOG_TEXT_LENGTH_MAX} characters, found {len(text)}"
            yield Problem((*path, "log_never"), expected)
    if "" in application.log_never:
        yield Problem((*path, "log_never"), "expected no empty text")
