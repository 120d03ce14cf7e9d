"""Which lab realises a fidelity, and whether this machine can have one.

Containers are imported only when they are asked for: a machine without an engine needs none of it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from windtunnel.harness.orchestrate.lab import Lab, LabError
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.labs.namespaces import NetnsLab
from windtunnel.harness.topology.model import Topology

NETNS = "netns"
COMPOSE = "compose"
SIM = "sim"

_PACKAGES = {
    "ip": "iproute2",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "tcpdump": "tcpdump",
}


def require(fidelity: str) -> None:
    """Raise LabError naming all that is missing unless this machine can have such a lab.

    What a lab's first processes would otherwise have to compile is compiled here.
    """
    if fidelity == NETNS:
        missing = [program for program in _PACKAGES if shutil.which(program) is None]
        if missing:
            packages = " ".join(sorted({_PACKAGES[program] for program in missing}))
            raise LabError(
                f"fidelity netns needs {', '.join(missing)}; "
                f"on Debian or Ubuntu: apt-get install {packages}"
            )
        privileges.require()
    elif fidelity == COMPOSE:
        from windtunnel.harness.orchestrate.labs import containers

        containers.require()
    elif fidelity != SIM:
        raise LabError(f"fidelity {fidelity!r}: expected {NETNS}, {COMPOSE} or {SIM}")


def make(fidelity: str, topology: Topology, *, records: Path, runs: Path) -> Lab:
    """Return a lab for a topology, not yet up.

    `records` is the folder in which labs note what they change; `runs` holds every path that the
    lab will be asked to translate.
    """
    if fidelity == COMPOSE:
        from windtunnel.harness.orchestrate.labs.containers import ComposeLab

        return ComposeLab(topology, records, runs)
    if fidelity == SIM:
        from windtunnel.harness.orchestrate.run.simulation import SimulatedLab

        return SimulatedLab(topology, records)
    return NetnsLab(topology, records)
