"""The netem statistics of a run: netem's configuration, and its effect on packets.

netem.json    by link direction: arguments of tc, options read back, counters at the end
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.documents import read_as, write_document

SCHEMA = "windtunnel-netem/1"


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
class NetemAccount:
    """The settings and counts of all interfaces with netem, by link direction such as `a->b`."""

    links: dict[str, NetemLink]

    def write(self, path: Path) -> None:
        links = {name: asdict(link) for name, link in self.links.items()}
        write_document(path, {"schema": SCHEMA, "links": links})

    @classmethod
    def read(cls, path: Path) -> "NetemAccount | None":
        """Read the netem statistics of a run, or return None if the file is missing.

        Raises DocumentError.
        """
        return read_as(cls, path, SCHEMA)
