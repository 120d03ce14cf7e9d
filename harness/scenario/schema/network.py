"""A scenario's network: hosts, connected by links through one middlebox.

    hosts: [pub, sub1, sub2]                          pub ---- mid ---- sub1
    links:                                                      |
      - {between: [pub, sub1]}                                 sub2
      - {between: [pub, sub2], impairments: ...}

`link` is the short form of `links` with one item.
"""

from pydantic import Field, model_validator

from windtunnel.harness.scenario.resolved.link_case import LINKS_MAX, Backend
from windtunnel.harness.scenario.schema.impairment import Impairments
from windtunnel.harness.scenario.schema.table import Name, Table

HOSTS_MAX = 32
"""Maximum number of hosts: the subnets of a run, and one more than the maximum number of links."""


class Link(Table):
    """A bidirectional link between two hosts."""

    between: tuple[Name, Name] = Field(strict=False)
    """The two hosts. In the decision log, the hosts of the only link are called `a` and `b`."""

    backend: Backend = "relay"
    """The backend that applies impairments: the relay, or the kernel's netem behind it. Default:
    relay.
    """

    impairments: dict[str, Impairments] = Field(default_factory=dict, max_length=2)
    """Impairments of every packet, by direction such as `a->b`, or `both`. Default: none."""


class Network(Table):
    """The hosts and links of a scenario."""

    hosts: tuple[Name, ...] = Field(strict=False, min_length=2, max_length=HOSTS_MAX)
    """Names of the 2 to 32 hosts, each of which has a driver."""

    link: Link | None = None
    """The only link, if there is just one."""

    links: tuple[Link, ...] = Field(default=(), strict=False, max_length=LINKS_MAX)
    """Up to 31 links between several hosts. Hosts without a link between them cannot reach each
    other.
    """

    @model_validator(mode="after")
    def _link_or_links(self) -> "Network":
        if (self.link is None) == (not self.links):
            raise ValueError("expected exactly one of link and links")
        return self

    @property
    def all_links(self) -> tuple[Link, ...]:
        """Return all links of the network in the order of their codes."""
        return self.links if self.link is None else (self.link,)

    @property
    def impairment_backend(self) -> Backend | None:
        """Return the backend (relay or netem) of the links with impairments, or None if there are
        none or their backends differ.
        """
        found = {each.backend for each in self.all_links if each.impairments}
        return found.pop() if len(found) == 1 else None

    def with_backend(self, backend: Backend) -> "Network":
        """Return a copy of this network in which all links with impairments use the given backend
        (relay or netem).
        """

        def changed(link: Link) -> Link:
            return link.model_copy(update={"backend": backend}) if link.impairments else link

        links = tuple(changed(each) for each in self.links)
        link = None if self.link is None else changed(self.link)
        return self.model_copy(update={"link": link, "links": links})

    @property
    def joined(self) -> tuple[str, ...]:
        """Return the hosts in the order of the middlebox's interfaces."""
        if len(self.all_links) == 1:
            return self.all_links[0].between
        return self.hosts
