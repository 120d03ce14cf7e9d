"""Chooses which hosts of a swarm trial have the real C driver.

ours                 neither
pyaeron              both, with the library of the Python package pyaeron
aeronmd-lib:PATH     both, with the user's own build of the library
mixed                one host, chosen by the seed, with pyaeron's library
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

OURS, PYAERON, MIXED = "ours", "pyaeron", "mixed"
OWN_BUILD = "aeronmd-lib:"
HOSTS = ("a", "b")
AERON_BATCHES: Mapping[str, str] = MappingProxyType(
    {
        "AERON_RECEIVER_IO_VECTOR_CAPACITY": "4",
        "AERON_SENDER_IO_VECTOR_CAPACITY": "4",
        "AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND": "4",
    }
)
"""The C driver's defaults: how many datagrams a duty cycle reads from a socket, and sends.

Our driver reads 64, and 16 at the sender, so it sees gaps, and their repairs, in other duty cycles.
"""


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
