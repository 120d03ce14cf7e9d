"""The network of a scenario: hosts around one middlebox, and the links between them.

    hosts: [pub, sub1, sub2]                          pub ---- mid ---- sub1
    links:                                                      |
      - {between: [pub, sub1]}                                 sub2
      - {between: [pub, sub2], weather: ...}

Of two hosts there is one `link`; it is the short form of a list of one. Refuses to know who sends
what over a link.
"""

from pydantic import Field, model_validator

from windtunnel.harness.scenario.resolved.link_case import LINKS_MAX, Backend
from windtunnel.harness.scenario.schema.impairment import Weather
from windtunnel.harness.scenario.schema.table import Name, Table

HOSTS_MAX = 8


class Link(Table):
    """A path between two hosts, both ways."""

    between: tuple[Name, Name] = Field(strict=False)
    """Its two ends: of the only link the first is `a` in the decision log, the second `b`."""

    backend: Backend = "relay"
    """Who delivers the weather: the relay (default), or the kernel's netem behind it."""

    weather: dict[str, Weather] = Field(default_factory=dict)
    """What befalls every packet, by direction such as `a->b`, or `both`; default nothing."""


class Network(Table):
    """The hosts and what joins them."""

    hosts: tuple[Name, ...] = Field(strict=False, min_length=2, max_length=HOSTS_MAX)
    """Names of the hosts, 2 to 8; each has a driver."""

    link: Link | None = None
    """The only link, of two hosts."""

    links: tuple[Link, ...] = Field(default=(), strict=False, max_length=LINKS_MAX)
    """The links of more hosts: a star, in which those without a link cannot reach each other."""

    @model_validator(mode="after")
    def _link_or_links(self) -> "Network":
        if (self.link is None) == (not self.links):
            raise ValueError("expected a link, or a list of links")
        return self

    @property
    def all_links(self) -> tuple[Link, ...]:
        """The links in the order of their codes."""
        return self.links if self.link is None else (self.link,)

    @property
    def weather_backend(self) -> Backend | None:
        """Who delivers the weather, if it is the same for all links that have any."""
        found = {each.backend for each in self.all_links if each.weather}
        return found.pop() if len(found) == 1 else None

    def with_backend(self, backend: Backend) -> "Network":
        """The same network with another backend for all weather that there is."""

        def changed(link: Link) -> Link:
            return link.model_copy(update={"backend": backend}) if link.weather else link

        links = tuple(changed(each) for each in self.links)
        link = None if self.link is None else changed(self.link)
        return self.model_copy(update={"link": link, "links": links})

    @property
    def joined(self) -> tuple[str, ...]:
        """The hosts in the order of the middlebox's interfaces."""
        if len(self.all_links) == 1:
            return self.all_links[0].between
        return self.hosts
