"""The ledger: the middlebox's account of its actions, by link direction and frame class.

Balance, for datagrams and for each frame class: in + added (or duplicated, forged) - dropped ==
out. Held or swapped frames leave later, and count both as in and as out. A damaged frame may leave
in another class, so it is subtracted from its old class and added to its new class.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from windtunnel.harness.artifact.document_values import refuse
from windtunnel.harness.artifact.documents import Document, StoredDocument, write_document
from windtunnel.harness.artifact.middlebox.impairment_account import ImpairmentAccount

_FRAME_FIELDS = {"in": "received", "out": "sent"}
_EARLIER_RULE_FIELDS = {"tried": "eligible", "struck": "selected"}


@dataclass
class FrameAccount:
    """Counts of the frames of one frame class in one link direction."""

    received: int = 0
    sent: int = 0
    dropped: int = 0
    duplicated: int = 0
    held: int = 0
    swapped: int = 0
    forged: int = 0
    damaged_from: int = 0
    damaged_into: int = 0
    other_streams: int = 0
    "Those of `received` whose streams the scenario does not specify. No rule applies to them."

    @property
    def unaccounted(self) -> int:
        """Number of frames that were received or added, but neither sent nor dropped."""
        added = self.duplicated + self.forged + self.damaged_into
        return self.received + added - self.dropped - self.damaged_from - self.sent

    def as_document(self) -> Document:
        plain = asdict(self)
        return {"in": plain.pop("received"), "out": plain.pop("sent"), **plain}


@dataclass
class LinkAccount:
    """Counts of datagrams, packets and frames in one link direction."""

    datagrams_in: int = 0
    datagrams_out: int = 0
    datagrams_dropped: int = 0
    "Datagrams from which no frame was sent."
    datagrams_added: int = 0
    "Duplicates, and the additional parts of datagrams that were split."
    datagrams_held_at_end: int = 0
    other_in: int = 0
    "Packets that are not UDP to or from an Aeron port."
    other_out: int = 0
    kernel_drops: int = 0
    "Packets that the Linux kernel dropped before the relay read them."
    send_failures: int = 0
    frames: dict[str, FrameAccount] = field(default_factory=dict)
    "Frame counts by frame class name."
    lag_ns: dict[str, int] = field(default_factory=dict)
    "Time from reading to sending a datagram, without specified delays: p50, p99, max."
    impairments: ImpairmentAccount | None = None
    "Impairments of the datagrams that passed the rules, or None if the relay applied none."

    @property
    def unaccounted(self) -> int:
        """Number of datagrams that were received or added, but neither sent nor dropped."""
        total = self.datagrams_in + self.datagrams_added
        return total - self.datagrams_dropped - self.datagrams_out

    def as_document(self) -> Document:
        apart = ("frames", "impairments")
        document = {key: value for key, value in asdict(self).items() if key not in apart}
        if self.impairments is not None:
            document["impairments"] = self.impairments.as_document()
        document["frames"] = {name: each.as_document() for name, each in self.frames.items()}
        return document


@dataclass
class PortAccount:
    """Counts of all packets, with or without Aeron frames, that arrived from one host."""

    received: int = 0
    strays: int = 0
    "Packets addressed to none of the hosts, such as ARP."
    unlinked: int = 0
    "Packets addressed to a host without a link from this one."
    copies: int = 0
    "Additional copies of multicast packets."

    @property
    def handed_on(self) -> int:
        """Number of packets forwarded to all links that begin at this host."""
        return self.received - self.strays - self.unlinked + self.copies


@dataclass
class RuleAccount:
    """Counts for one fault rule: the frames that met its conditions (`eligible`), and those of them
    that its random draw selected (`selected`).
    """

    eligible: int = 0
    selected: int = 0


@dataclass
class Ledger(StoredDocument):
    """The counts for all link directions, by name such as `a->b`, and for all rules, by id."""

    SCHEMA: ClassVar[str] = "windtunnel-ledger/1"

    links: dict[str, LinkAccount]
    rules: dict[str, RuleAccount] = field(default_factory=dict)
    ports: dict[str, PortAccount] = field(default_factory=dict)
    "Counts by host, present only with several links."

    def write(self, path: Path) -> None:
        links = {name: link.as_document() for name, link in self.links.items()}
        rules = {name: asdict(rule) for name, rule in self.rules.items()}
        document: Document = {"schema": self.SCHEMA, "links": links, "rules": rules}
        if self.ports:
            document["ports"] = {name: asdict(port) for name, port in self.ports.items()}
        write_document(path, document)

    @staticmethod
    def _adapted(document: Document) -> Document:
        """Rename the keys of a ledger document to field names: `in` and `out` of a frame account,
        and the names of earlier versions: `weather` of the impairments, `tried` and `struck` of a
        rule. Missing keys are ignored.
        """
        changed = dict(document)
        for key, renamed in (("links", _renamed_link), ("rules", _renamed_rule)):
            if isinstance(accounts := document.get(key), dict):
                changed[key] = {name: renamed(each) for name, each in accounts.items()}
        return changed


def _renamed_rule(rule: Any) -> Any:
    if not isinstance(rule, dict):
        return rule
    return {_EARLIER_RULE_FIELDS.get(name, name): value for name, value in rule.items()}


def _renamed_link(link: Any) -> Any:
    if not isinstance(link, dict):
        return link
    frames = link.get("frames")
    if not isinstance(frames, dict):
        raise refuse("frames", "an object", frames)
    named = {"impairments" if key == "weather" else key: value for key, value in link.items()}
    return {**named, "frames": {name: _renamed_frame(each) for name, each in frames.items()}}


def _renamed_frame(account: Any) -> Any:
    if not isinstance(account, dict):
        return account
    for name in _FRAME_FIELDS:
        if name not in account:
            raise refuse(name, "an integer", None)
    return {_FRAME_FIELDS.get(name, name): value for name, value in account.items()}
