"""The middlebox's own account of what it did, by link direction and frame class.

Balance, for datagrams and for each frame class: in + added (or duplicated, forged) - dropped ==
out. What is held or swapped leaves later, and so counts in both. A damaged frame may leave as one
of another class, so it is taken from the class that it was and added to what it became.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.documents import (
    Document,
    DocumentError,
    read_document,
    write_document,
)
from windtunnel.harness.artifact.middlebox.impairment_account import WeatherAccount

SCHEMA = "windtunnel-ledger/1"


@dataclass
class FrameAccount:
    """The account of one frame class on one link direction."""

    received: int = 0
    sent: int = 0
    dropped: int = 0
    duplicated: int = 0
    held: int = 0
    swapped: int = 0
    forged: int = 0
    damaged_from: int = 0
    damaged_into: int = 0

    @property
    def unaccounted(self) -> int:
        """What came in or was made, and neither left nor was dropped."""
        made = self.duplicated + self.forged + self.damaged_into
        return self.received + made - self.dropped - self.damaged_from - self.sent

    def as_document(self) -> Document:
        plain = asdict(self)
        return {"in": plain.pop("received"), "out": plain.pop("sent"), **plain}

    @classmethod
    def from_document(cls, document: Document) -> "FrameAccount":
        plain = dict(document)
        return cls(received=plain.pop("in"), sent=plain.pop("out"), **plain)


@dataclass
class LinkAccount:
    """The account of one link direction."""

    datagrams_in: int = 0
    datagrams_out: int = 0
    datagrams_dropped: int = 0
    "Datagrams of which nothing left."
    datagrams_added: int = 0
    "Duplicates, and the further pieces of carved datagrams."
    datagrams_held_at_end: int = 0
    other_in: int = 0
    "Packets that are not UDP to or from an Aeron port."
    other_out: int = 0
    kernel_drops: int = 0
    "Packets that the kernel dropped before the relay could read them."
    send_failures: int = 0
    frames: dict[str, FrameAccount] = field(default_factory=dict)
    "By frame class name."
    lag_ns: dict[str, int] = field(default_factory=dict)
    "Time from reading a datagram to sending it, without any ordered delay: p50, p99, max."
    weather: WeatherAccount | None = None
    "What befell the datagrams that had left the rules; None where the relay made no weather."

    @property
    def unaccounted(self) -> int:
        """Datagrams that came in or were made, and neither left nor were dropped."""
        made = self.datagrams_in + self.datagrams_added
        return made - self.datagrams_dropped - self.datagrams_out

    def as_document(self) -> Document:
        apart = ("frames", "weather")
        document = {key: value for key, value in asdict(self).items() if key not in apart}
        if self.weather is not None:
            document["weather"] = self.weather.as_document()
        document["frames"] = {name: each.as_document() for name, each in self.frames.items()}
        return document

    @classmethod
    def from_document(cls, document: Document) -> "LinkAccount":
        plain: dict[str, Any] = dict(document)
        frames = plain.pop("frames")
        accounts = {name: FrameAccount.from_document(each) for name, each in frames.items()}
        if plain.get("weather") is not None:
            plain["weather"] = WeatherAccount(**plain["weather"])
        return cls(frames=accounts, **plain)


@dataclass
class PortAccount:
    """What came in from one host of several, in packets of any kind."""

    received: int = 0
    strays: int = 0
    "For none of the hosts, such as ARP."
    unlinked: int = 0
    "For a host that no link leads to."
    copies: int = 0
    "What a group's packets make of themselves beyond the one that came."

    @property
    def handed_on(self) -> int:
        """What the links that begin here got together."""
        return self.received - self.strays - self.unlinked + self.copies


@dataclass
class RuleAccount:
    """How often a rule had to decide, and how often it struck."""

    tried: int = 0
    struck: int = 0


@dataclass
class Ledger:
    """The accounts of all link directions, by name such as `a->b`, and of all rules, by id."""

    links: dict[str, LinkAccount]
    rules: dict[str, RuleAccount] = field(default_factory=dict)
    ports: dict[str, PortAccount] = field(default_factory=dict)
    "By host; only where there are several links."

    def write(self, path: Path) -> None:
        links = {name: link.as_document() for name, link in self.links.items()}
        rules = {name: asdict(rule) for name, rule in self.rules.items()}
        document: Document = {"schema": SCHEMA, "links": links, "rules": rules}
        if self.ports:
            document["ports"] = {name: asdict(port) for name, port in self.ports.items()}
        write_document(path, document)

    @classmethod
    def read(cls, path: Path) -> "Ledger | None":
        """The ledger, or None when there is none; DocumentError when it cannot be understood."""
        document = read_document(path, SCHEMA)
        if document is None:
            return None
        try:
            links = document["links"].items()
            rules = {key: RuleAccount(**each) for key, each in document.get("rules", {}).items()}
            ports = {key: PortAccount(**each) for key, each in document.get("ports", {}).items()}
            accounts = {name: LinkAccount.from_document(link) for name, link in links}
            return cls(accounts, rules, ports)
        except (KeyError, TypeError, AttributeError) as error:
            raise DocumentError(f"{path.name}: {error}") from error
