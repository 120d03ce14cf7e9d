"""The names of the fidelities, each of which is realised by a lab of its own."""

from __future__ import annotations

from typing import Literal

Fidelity = Literal["netns", "compose", "sim"]

NETNS: Fidelity = "netns"
"""Network namespaces of this machine: real sockets and real time."""

COMPOSE: Fidelity = "compose"
"""Containers that are joined by the container engine's bridges."""

SIM: Fidelity = "sim"
"""One process on virtual time."""
