"""What a simulated world has, and what it cannot stand in for."""

from __future__ import annotations

from ipaddress import ip_address

from windtunnel.harness.scenario.resolved.case import Case

_CLOCK_READERS = ("media-rcv-ts-offset", "channel-rcv-ts-offset", "channel-snd-ts-offset")


class Unsupported(Exception):
    """What the case asks for and a simulated world does not have."""


def require_supported(case: Case) -> None:
    """Raise Unsupported unless a simulated world has all that a case needs."""
    for host in case.hosts:
        if ip_address(host.address).version != 4:
            raise Unsupported(f"sim has IPv4 hosts only; {host.name} is {host.address}")
    for link in case.link_names:
        if case.backend_of(link) != "relay":
            text = f"sim has no {case.backend_of(link)} that could deliver weather on {link}"
            raise Unsupported(f"{text}, only the relay's")
    if case.archives:
        text = f"sim steps drivers and their clients; host {case.archives[0].host} has an archive"
        raise Unsupported(f"{text}: use --fidelity netns")
    for traffic in case.traffic:
        channels = (
            traffic.channel,
            traffic.receive,
            *(channel for _, channel in (*traffic.channels, *traffic.receives, *traffic.sources)),
            *traffic.destinations,
        )
        for name in _CLOCK_READERS:
            if any(f"{name}=" in each for each in channels):
                raise Unsupported(
                    f"sim has no {name} (traffic {traffic.id}): such stamps are of the real clock"
                )
