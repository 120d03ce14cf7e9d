"""Chooses which hosts of a swarm trial have the real C driver.

ours                 neither
pyaeron              both, with the library of the Python package pyaeron
aeronmd-lib:PATH     both, with the user's own build of the library
mixed                one host, chosen by the seed, with pyaeron's library
"""

from __future__ import annotations

import random
from pathlib import Path

OURS, PYAERON, MIXED = "ours", "pyaeron", "mixed"
OWN_BUILD = "aeronmd-lib:"
HOSTS = ("a", "b")


def real_hosts(drivers: str, seed: int) -> tuple[str, ...]:
    """Return the names of the hosts with the real C driver in the trial of a seed."""
    if drivers == OURS:
        return ()
    if drivers == MIXED:
        # The trial's own generator is not used, so all else is as with other drivers.
        return (random.Random(f"drivers {seed}").choice(HOSTS),)
    return HOSTS


def library_of(drivers: str) -> Path | None:
    """Return the path of the user's own build of the library, or None for pyaeron's."""
    return Path(drivers.removeprefix(OWN_BUILD)) if drivers.startswith(OWN_BUILD) else None
