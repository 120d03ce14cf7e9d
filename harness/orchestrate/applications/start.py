"""Starts one application, in the way of its lab.

network namespaces   launcher: a process namespace, and a log of limited length
containers           a container of its own, which the lab starts
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from windtunnel.harness.orchestrate.applications import launcher
from windtunnel.harness.orchestrate.applications.application_process import (
    LOG_BYTES_MAX,
    ApplicationProcess,
    launcher_command,
)
from windtunnel.harness.orchestrate.lab import ApplicationRequest, ContainerLab, LabApplication
from windtunnel.harness.orchestrate.labs.compose_file import SCENARIO_IN_CONTAINER
from windtunnel.harness.orchestrate.processes.watch import WatchedProcess
from windtunnel.harness.orchestrate.run.run_processes import RunProcesses
from windtunnel.harness.scenario.applications import placeholder
from windtunnel.harness.scenario.applications.application_case import ApplicationCase

ROLE = "application"


@dataclass(frozen=True)
class Surroundings:
    """What an application finds where it is started, besides what its scenario says."""

    folder: Path | None = None
    """Its working folder, or None for one of its own in the run folder."""
    variables: Mapping[str, str] = field(default_factory=dict)


def start(
    case: ApplicationCase, around: Surroundings, processes: RunProcesses
) -> tuple[WatchedProcess, LabApplication]:
    """Start an application, and supervise it. The case has placeholders, which are filled in."""
    is_container = isinstance(processes.lab, ContainerLab)
    scenario = str(processes.spec.scenario_file.parent)
    values = {
        placeholder.SCENARIO_DIRECTORY: SCENARIO_IN_CONTAINER if is_container else scenario,
        placeholder.PYTHON: processes.lab.python(case.host),
    }
    env = {**processes.timeouts, **({} if is_container else around.variables)}
    if case.driver != "none":
        name = "" if case.driver == "shared" else case.id
        directory = processes.directory(case.host, name)
        values[placeholder.AERON_DIRECTORY] = env["AERON_DIR"] = directory
    filled = case.filled_in(values)
    begin = _in_container if is_container else _in_namespace
    return begin(filled, around, processes, env | filled.env)


def _in_namespace(
    case: ApplicationCase, around: Surroundings, processes: RunProcesses, env: dict[str, str]
) -> tuple[WatchedProcess, LabApplication]:
    files = processes.spec.folder.host(case.host).application(case.id)
    offset = files.log.stat().st_size if files.log.exists() else 0
    command = launcher_command(files, case.command, around.folder)
    what = f"{ROLE}-{case.id}"
    with blocked(launcher.FORWARDED):
        watched = processes.spawn(ROLE, case.host, command, files.launcher_log, env, what=what)
    process = ApplicationProcess(watched.process, files)
    watched.process, watched.log, watched.offset = process, files.log, offset
    return watched, process


@contextmanager
def blocked(numbers: Iterable[int]) -> Iterator[None]:
    """Block signals for a `with` block. Processes that are started in it inherit that, so a signal
    waits until the process is able to handle it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _in_container(
    case: ApplicationCase, around: Surroundings, processes: RunProcesses, env: dict[str, str]
) -> tuple[WatchedProcess, LabApplication]:
    lab, files = processes.lab, processes.spec.folder.host(case.host).application(case.id)
    assert isinstance(lab, ContainerLab)
    scenario = processes.spec.scenario_file.parent
    request = ApplicationRequest(
        image=processes.images.get(case.id, case.image),
        working_dir=case.working_dir,
        command=case.command,
        env=env,
        work=files.folder,
        scenario=scenario if around.folder is None else around.folder,
        starts_in_scenario=around.folder is not None,
        log=files.log,
        log_bytes_max=LOG_BYTES_MAX,
        memory_bytes=case.memory_bytes,
        milli_cpus=case.milli_cpus,
        user=case.user,
        processes_max=case.processes_max,
    )
    started: list[LabApplication] = []

    def begin(name: str) -> LabApplication:
        started.append(lab.start_application(name, request))
        return started[0]

    watched = processes.add(ROLE, case.host, files.log, begin, what=f"{ROLE}-{case.id}")
    return watched, started[0]
