"""Selects the lab for a fidelity level, and checks that this machine can run it.

The container lab is imported on demand, because a machine without an engine does not need it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from windtunnel.driver.kernels.sources import cache_root
from windtunnel.harness.orchestrate.fidelity import COMPOSE, NETNS, SIM
from windtunnel.harness.orchestrate.lab import Lab, LabError
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.labs.namespaces import NetnsLab
from windtunnel.harness.orchestrate.labs.simulated import SimulatedLab
from windtunnel.harness.orchestrate.precompile import precompile
from windtunnel.harness.orchestrate.precompile.progress import OnProgress, print_progress
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.topology.model import Topology

_PACKAGES = {
    "ip": "iproute2",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "tcpdump": "tcpdump",
}


def require(fidelity: str, on_progress: OnProgress = print_progress) -> None:
    """Raise LabError if this machine cannot run the lab of a fidelity level. The error names what
    is missing.

    Also compiles the kernels that a lab's first processes would otherwise have to compile, and
    reports their number to `on_progress`. In containers, another process compiles them.
    """
    if fidelity == NETNS:
        missing = missing_programs()
        if missing:
            packages = " ".join(sorted({_PACKAGES[program] for program in missing}))
            raise LabError(
                f"fidelity netns needs {', '.join(missing)}: on Debian or Ubuntu, run "
                f"apt-get install {packages}"
            )
        privileges.require()
        precompile.compile_all(cache_root(), NETNS, on_progress)
    elif fidelity == COMPOSE:
        from windtunnel.harness.orchestrate.labs import containers

        containers.require()
    elif fidelity == SIM:
        precompile.compile_all(cache_root(), SIM, on_progress)
    else:
        raise LabError(f"fidelity {fidelity!r}: expected {NETNS}, {COMPOSE} or {SIM}")


def missing_programs() -> list[str]:
    """Return the programs that labs of network namespaces need and this machine lacks."""
    return [program for program in _PACKAGES if shutil.which(program) is None]


def require_hosts(fidelity: str, scenarios: Iterable[Scenario]) -> None:
    """Raise LabError if a lab of this fidelity cannot provide the hosts of a scenario.

    Starts no process. Scenarios that do not support this fidelity are ignored.
    """
    if fidelity != COMPOSE:
        return
    from windtunnel.harness.orchestrate.labs import containers

    for scenario in scenarios:
        if fidelity in scenario.fidelity:
            try:
                containers.require_hosts(scenario.network.hosts)
            except LabError as error:
                raise LabError(f"scenario {scenario.name}: {error}") from error


def make(fidelity: str, topology: Topology, *, records: Path, runs: Path) -> Lab:
    """Create the lab for a topology. The caller must call `up`.

    `records` is the folder in which labs record what they change. `runs` contains all paths that
    the lab has to translate.
    """
    if fidelity == COMPOSE:
        from windtunnel.harness.orchestrate.labs.containers import ComposeLab

        return ComposeLab(topology, records, runs)
    if fidelity == SIM:
        return SimulatedLab(topology, records)
    return NetnsLab(topology, records)
