"""Checks that the simulator supports everything that a case (a resolved scenario) requires."""

from __future__ import annotations

from ipaddress import ip_address

from windtunnel.harness.scenario.resolved.case import Case

_CLOCK_READERS = ("media-rcv-ts-offset", "channel-rcv-ts-offset", "channel-snd-ts-offset")


class Unsupported(Exception):
    """Raised if a case requires a feature that the simulator does not support."""


def require_supported(case: Case) -> None:
    """Raise Unsupported unless the simulator supports everything that a case requires."""
    for host in case.hosts:
        if ip_address(host.address).version != 4:
            raise Unsupported(f"sim supports only IPv4: host {host.name} has {host.address}")
    for link in case.link_names:
        if case.backend_of(link) != "relay":
            text = f"sim cannot apply the impairments of {link} with {case.backend_of(link)}"
            raise Unsupported(f"{text}: sim supports only the backend `relay`")
    for archive in case.archives:
        if archive.disk_bytes is not None:
            text = f"sim does not support a disk of limited size: the archive of {archive.host}"
            raise Unsupported(f"{text} needs --fidelity netns")
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
                    f"sim does not support {name} (traffic {traffic.id}): "
                    "its timestamps come from the real clock"
                )
