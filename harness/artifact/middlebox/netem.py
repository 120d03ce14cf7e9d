"""What the kernel held of the weather that was asked for, and what it did to the packets.

netem.json    by link direction: the words given to tc, what it read back, its counts at the end
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.documents import DocumentError, read_document, write_document

SCHEMA = "windtunnel-netem/1"


@dataclass
class NetemLink:
    """One interface with a netem on it."""

    interface: str
    arguments: list[str]
    options: dict[str, Any]
    """As `tc -j` tells them, read back before the traffic."""
    packets: int = 0
    """That left, copies included; of any kind, from the setting to the end."""
    dropped: int = 0
    waiting: int = 0
    """Still inside at the end."""


@dataclass
class NetemAccount:
    """All interfaces with a netem, by link direction such as `a->b`."""

    links: dict[str, NetemLink]

    def write(self, path: Path) -> None:
        links = {name: asdict(link) for name, link in self.links.items()}
        write_document(path, {"schema": SCHEMA, "links": links})

    @classmethod
    def read(cls, path: Path) -> "NetemAccount | None":
        """The account, or None when there is none; DocumentError if it cannot be understood."""
        document = read_document(path, SCHEMA)
        if document is None:
            return None
        try:
            return cls({name: NetemLink(**each) for name, each in document["links"].items()})
        except (KeyError, TypeError, AttributeError) as error:
            raise DocumentError(f"{path.name}: {error}") from error
