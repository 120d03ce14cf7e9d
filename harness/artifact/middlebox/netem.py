"""The netem statistics of a run: netem's configuration, and its effect on packets.

netem.json    by link direction: arguments of tc, options read back, counters at the end
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from windtunnel.harness.artifact.documents import StoredDocument


@dataclass
class NetemLink:
    """The netem configuration and the packet counts of one interface."""

    interface: str
    arguments: list[str]
    options: dict[str, Any]
    """Options as `tc -j` printed them before the traffic."""
    packets: int = 0
    """Packets of any kind sent since netem was configured, including duplicates."""
    dropped: int = 0
    waiting: int = 0
    """Packets that were still queued at the end."""


@dataclass
class NetemAccount(StoredDocument):
    """The settings and counts of all interfaces with netem, by link direction such as `a->b`."""

    SCHEMA: ClassVar[str] = "windtunnel-netem/1"

    links: dict[str, NetemLink]
