"""Validates a scenario's archives, recordings, replays, replications and merges.

    at most one archive on each host        records streams that its host receives or publishes
    segment files of at least a term        replays streams that it has recorded

Each problem has the path of its value in the file.
"""

from collections.abc import Iterator

from windtunnel.harness.scenario.schema.archive import DISK_RESERVE_BYTES, Archive
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.scenario.schema.merge import merge_problems
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.traffic import Traffic
from windtunnel.harness.scenario.validation.traffic_validation import unknown_host

EQUAL = "recording_equals_published"
"""Name of the check of recordings."""
MERGED = "merged_into_live"
"""Name of the check of replay merges."""
RECORDING_PARAMETERS = (
    "term-length",
    "mtu",
    "init-term-id",
    "term-id",
    "term-offset",
    "session-id",
)
"""Channel parameters that an archive adds to a replay's channel."""


def archive_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield all problems with a scenario's archives and the streams that they record."""
    hosts = scenario.network.hosts
    if not any(each.merges for each in scenario.traffic):
        checks = [index for index, each in enumerate(scenario.expect) if each.name == MERGED]
        for index in checks:
            yield Problem(("expect", index), "this check needs traffic with `merges`")
    used = {host for each in scenario.traffic for host in each.archived}
    for index, archive in enumerate(scenario.archives):
        path: Path = ("archives", index)
        if archive.host not in hosts:
            yield Problem((*path, "host"), unknown_host(archive.host, hosts))
        elif archive.host not in used:
            text = f"the archive records nothing: no traffic has `recorded: {archive.host}`"
            yield Problem((*path, "host"), text)
        if archive.host in [each.host for each in scenario.archives[:index]]:
            text = f"host {archive.host} has two archives: remove one of them"
            yield Problem((*path, "host"), text)
        if archive.segment_bytes & (archive.segment_bytes - 1):
            text = f"expected a power of two, found {archive.segment_bytes}B"
            yield Problem((*path, "segment"), text)
        yield from _disk(scenario, archive, path)
    for index, traffic in enumerate(scenario.traffic):
        if traffic.recorded is not None:
            yield from _recorded(scenario, traffic, ("traffic", index))
        if traffic.replays is not None:
            yield from _replays(scenario, traffic, ("traffic", index))
        if traffic.replicated is not None:
            yield from _replicated(scenario, traffic, ("traffic", index))
        if traffic.merges is not None:
            yield from _merges(scenario, traffic, ("traffic", index))
    checks = [index for index, each in enumerate(scenario.expect) if each.name == EQUAL]
    if not used and checks:
        yield Problem(("expect", checks[0]), "this check needs traffic with `recorded`")


def _disk(scenario: Scenario, archive: Archive, path: Path) -> Iterator[Problem]:
    """Yield the problems with an archive whose disk has a limited size."""
    if archive.disk_bytes is None:
        return
    at = (*path, "disk")
    targets = [each.whom.process for each in scenario.events if each.whom.host == archive.host]
    if "archive" in targets or "all" in targets:
        text = "no event may affect an archive with a disk: the disk is removed with its archive"
        yield Problem(at, text)
    if archive.disk_bytes < DISK_RESERVE_BYTES + 2 * archive.segment_bytes:
        text = f"expected room for two {archive.segment_bytes}B segment files and the catalog"
        yield Problem(at, f"{text}, found {archive.disk_bytes}B")
    others = [
        each.id for each in scenario.traffic
        if archive.host in each.archived and (each.merges or each.replicated)
    ]  # fmt: skip
    if others or any(each.replays and archive.host in each.from_hosts for each in scenario.traffic):
        text = (
            "recordings on this disk may end early: they cannot be replayed, replicated or merged"
        )
        yield Problem(at, text)


def _recorded(scenario: Scenario, traffic: Traffic, path: Path) -> Iterator[Problem]:
    host = traffic.recorded
    archive = next((each for each in scenario.archives if each.host == host), None)
    if archive is None:
        text = f"host {host!r} has no archive: add one to `archives`"
        yield Problem((*path, "recorded"), text)
    if host not in (*traffic.to_hosts, *traffic.from_hosts):
        text = f"expected one of the stream's hosts {', '.join(_ends(traffic))}, found {host}"
        yield Problem((*path, "recorded"), text)
    if traffic.rejoins:
        text = "cannot be combined with `rejoins`: an interrupted stream has several recordings"
        yield Problem((*path, "recorded"), text)
    yield from _readable(traffic, archive, path)


def _readable(traffic: Traffic, archive: Archive | None, path: Path) -> Iterator[Problem]:
    """Yield problems that prevent a complete recording of a stream."""
    host = traffic.recorded or ""
    try:
        receive = parse_channel(traffic.receives.get(host, traffic.receive))
        if not receive.reliable and host in traffic.to_hosts:
            text = "expected a reliable stream: an unreliable stream's recording has filled gaps"
            yield Problem((*path, "recorded"), text)
        channel = parse_channel(traffic.channels.get(host, traffic.channel))
    except ValueError:
        return  # Reported for the channel itself.
    if channel.control_mode == "manual" and not channel.control and host in traffic.from_hosts:
        text = "a publisher's archive does not find a channel with control-mode=manual: add"
        yield Problem((*path, "recorded"), f"{text} control=HOST:PORT to it")
    if archive is not None and archive.segment_bytes < channel.term_length:
        text = f"expected segments of at least the term length, {channel.term_length}B, on host"
        text = f"{text} {host}"
        text = f"{text}, found {archive.segment_bytes}B"
        yield Problem((*path, "recorded"), text)


def _replays(scenario: Scenario, traffic: Traffic, path: Path) -> Iterator[Problem]:
    original = next((each for each in scenario.traffic if each.id == traffic.replays), None)
    if original is None or original.recorded is None or original.replays is not None:
        recorded = [each.id for each in scenario.traffic if each.recorded and not each.replays]
        text = f"expected one of the recorded streams {', '.join(recorded) or '(none)'}"
        text = f"{text}, found {traffic.replays!r}"
        yield Problem((*path, "replays"), text)
        return
    if traffic.from_hosts != (original.recorded,):
        text = f"expected host {original.recorded}, where {original.id} is recorded"
        yield Problem((*path, "from"), text)
    if traffic.content != original.content:
        text = f"remove this key: a replay has the content of {original.id}"
        yield Problem((*path, "content"), text)
    if traffic.publication != "exclusive":
        yield Problem((*path, "publication"), "expected exclusive, like every replay")
    if traffic.rejoins:
        text = "remove this key: a replay does not continue after an interruption"
        yield Problem((*path, "rejoins"), text)
    try:
        written = parse_channel(traffic.channel).parameters
    except ValueError:
        return  # Reported for the channel itself.
    redundant = [name for name in RECORDING_PARAMETERS if name in written]
    if redundant:
        text = f"remove {', '.join(redundant)}: a replay has the recording's values"
        yield Problem((*path, "channel"), text)


def _replicated(scenario: Scenario, traffic: Traffic, path: Path) -> Iterator[Problem]:
    host, at = traffic.replicated, (*path, "replicated")
    if host not in [each.host for each in scenario.archives]:
        yield Problem(at, f"host {host!r} has no archive: add one to `archives`")
    if traffic.recorded is None:
        yield Problem(at, "needs `recorded`: there is nothing to replicate")
    elif host == traffic.recorded:
        yield Problem(at, f"host {host} records the stream itself: choose another host")
    elif {host, traffic.recorded} not in [set(each.between) for each in scenario.network.all_links]:
        text = f"there is no link between {traffic.recorded} and {host}"
        yield Problem(at, text)
    if _kills_archives(scenario):
        yield Problem(at, "no event may kill an archive: replication ends with either archive")


def _kills_archives(scenario: Scenario) -> bool:
    return any(each.act.kill and each.whom.process == "archive" for each in scenario.events)


def _merges(scenario: Scenario, traffic: Traffic, path: Path) -> Iterator[Problem]:
    assert traffic.merges is not None
    if traffic.to_hosts != (traffic.recorded,):
        text = f"expected one subscriber and `recorded: {traffic.to_host}`: a merge replays the "
        yield Problem((*path, "merges"), f"{text}recording of its own host")
    try:
        channel, receive = parse_channel(traffic.channel), parse_channel(traffic.receive)
        ports = {*channel.ports, *receive.ports}
    except ValueError:
        return  # Reported for the channels themselves.
    if channel.control_mode != "dynamic":
        text = "expected control-mode=dynamic: a merge adds a destination to the stream"
        yield Problem((*path, "channel"), text)
    if traffic.replays is not None or traffic.consume is not None or traffic.partial:
        text = "cannot be combined with replays, consume or partial"
        yield Problem((*path, "merges"), text)
    if _kills_archives(scenario):
        text = "no event may kill an archive: a merge ends with the archive that replays"
        yield Problem((*path, "merges"), text)
    yield from merge_problems(
        traffic.merges,
        traffic.to_host,
        scenario.network.hosts,
        ports,
        traffic.content.total_bytes,
        (*path, "merges"),
    )


def _ends(traffic: Traffic) -> tuple[str, ...]:
    return (*traffic.from_hosts, *traffic.to_hosts)
