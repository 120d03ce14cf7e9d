"""The fidelity levels `netns`, `compose` and `sim`, which select the kind of lab for a run."""

from __future__ import annotations

from typing import Literal

Fidelity = Literal["netns", "compose", "sim"]

NETNS: Fidelity = "netns"
"""Network namespaces on this machine: real sockets and real time."""

COMPOSE: Fidelity = "compose"
"""Containers connected by the container engine's bridges."""

SIM: Fidelity = "sim"
"""A simulation in one process, in virtual time."""
