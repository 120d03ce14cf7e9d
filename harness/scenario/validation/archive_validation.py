"""Archives that are well-formed and yet could not record.

    a host of the scenario, once       a stream that it receives or publishes, whole
    files that hold a term             a replay from there of what is recorded there

Each finding names the place in the file by a path of keys and indices.
"""

from collections.abc import Iterator

from windtunnel.harness.scenario.schema.archive import DISK_OTHERS_BYTES, Archive
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.scenario.schema.merge import merge_problems
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.traffic import Traffic
from windtunnel.harness.scenario.validation.traffic_validation import unknown_host

EQUAL = "recording_equals_published"
"""The check that is about recordings."""
MERGED = "merged_into_live"
"""The one about those who merge."""
OF_THE_RECORDING = ("term-length", "mtu", "init-term-id", "term-id", "term-offset", "session-id")
"""Parameters of a channel that an archive puts on that of a replay."""


def archive_problems(scenario: Scenario) -> Iterator[Problem]:
    """All that is wrong with a scenario's archives, and with what they are to record."""
    hosts = scenario.network.hosts
    if not any(each.merges for each in scenario.traffic):
        wanted = [index for index, each in enumerate(scenario.expect) if each.name == MERGED]
        for index in wanted:
            yield Problem(("expect", index), "nobody merges: expected a traffic with `merges`")
    used = {host for each in scenario.traffic for host in each.archived}
    for index, archive in enumerate(scenario.archives):
        path: Path = ("archives", index)
        if archive.host not in hosts:
            yield Problem((*path, "host"), unknown_host(archive.host, hosts))
        elif archive.host not in used:
            text = f"no traffic is recorded there: expected one with `recorded: {archive.host}`"
            yield Problem((*path, "host"), text)
        if archive.host in [each.host for each in scenario.archives[:index]]:
            yield Problem((*path, "host"), f"host {archive.host} has an archive already")
        if archive.segment_bytes & (archive.segment_bytes - 1):
            yield Problem((*path, "segment"), f"{archive.segment_bytes}B is no power of two")
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
    asked = [index for index, each in enumerate(scenario.expect) if each.name == EQUAL]
    if not used and asked:
        text = "no traffic is recorded: expected one with `recorded`"
        yield Problem(("expect", asked[0]), text)


def _disk(scenario: Scenario, archive: Archive, path: Path) -> Iterator[Problem]:
    """What a small disk makes impossible."""
    if archive.disk_bytes is None:
        return
    at = (*path, "disk")
    whom = [each.whom.process for each in scenario.events if each.whom.host == archive.host]
    if "archive" in whom or "all" in whom:
        yield Problem(at, "such a disk goes with its archive: expected no event that befalls it")
    if archive.disk_bytes < DISK_OTHERS_BYTES + 2 * archive.segment_bytes:
        text = f"{archive.disk_bytes}B hold no two files of {archive.segment_bytes}B"
        yield Problem(at, f"{text} beside the catalog")
    others = [
        each.id for each in scenario.traffic
        if archive.host in each.archived and (each.merges or each.replicated)
    ]  # fmt: skip
    if others or any(each.replays and archive.host in each.from_hosts for each in scenario.traffic):
        text = "what is recorded there may end early: expected nobody who reads it in the run"
        yield Problem(at, text)


def _recorded(scenario: Scenario, traffic: Traffic, path: Path) -> Iterator[Problem]:
    host = traffic.recorded
    archive = next((each for each in scenario.archives if each.host == host), None)
    if archive is None:
        text = f"no archive on host {host!r}: expected one in `archives`"
        yield Problem((*path, "recorded"), text)
    if host not in (*traffic.to_hosts, *traffic.from_hosts):
        text = f"expected an end of the stream, {', '.join(_ends(traffic))}; found {host}"
        yield Problem((*path, "recorded"), text)
    if traffic.rejoins:
        text = "a stream that may be cut has no one recording: expected no `rejoins`"
        yield Problem((*path, "recorded"), text)
    yield from _readable(traffic, archive, path)


def _readable(traffic: Traffic, archive: Archive | None, path: Path) -> Iterator[Problem]:
    """What its channels say against a recording of all that was published."""
    host = traffic.recorded or ""
    try:
        receive = parse_channel(traffic.receives.get(host, traffic.receive))
        if not receive.reliable and host in traffic.to_hosts:
            text = "gaps of an unreliable stream are filled, in its recording too"
            yield Problem((*path, "recorded"), text)
        term_length = parse_channel(traffic.channels.get(host, traffic.channel)).term_length
    except ValueError:
        return  # Told of the channel itself.
    if archive is not None and archive.segment_bytes < term_length:
        text = f"files of {archive.segment_bytes}B on {host} hold no term of {term_length}"
        yield Problem((*path, "recorded"), text)


def _replays(scenario: Scenario, traffic: Traffic, path: Path) -> Iterator[Problem]:
    original = next((each for each in scenario.traffic if each.id == traffic.replays), None)
    if original is None or original.recorded is None or original.replays is not None:
        recorded = [each.id for each in scenario.traffic if each.recorded and not each.replays]
        text = f"no recorded stream {traffic.replays!r}: there are {', '.join(recorded) or 'none'}"
        yield Problem((*path, "replays"), text)
        return
    if traffic.from_hosts != (original.recorded,):
        text = f"{original.id} is recorded on {original.recorded}: expected its replay from there"
        yield Problem((*path, "from"), text)
    if traffic.content != original.content:
        text = f"a replay has the content of what it replays, {original.id}: expected none here"
        yield Problem((*path, "content"), text)
    if traffic.publication != "exclusive":
        yield Problem((*path, "publication"), "a replay is exclusive")
    if traffic.rejoins:
        text = "a replay that was cut does not go on: expected no `rejoins`"
        yield Problem((*path, "rejoins"), text)
    try:
        written = parse_channel(traffic.channel).parameters
    except ValueError:
        return  # Told of the channel itself.
    said = [name for name in OF_THE_RECORDING if name in written]
    if said:
        text = f"the recording says what {', '.join(said)} of its replay is: expected none here"
        yield Problem((*path, "channel"), text)


def _replicated(scenario: Scenario, traffic: Traffic, path: Path) -> Iterator[Problem]:
    host, at = traffic.replicated, (*path, "replicated")
    if host not in [each.host for each in scenario.archives]:
        yield Problem(at, f"no archive on host {host!r}: expected one in `archives`")
    if traffic.recorded is None:
        yield Problem(at, "there is nothing to copy: expected `recorded` with it")
    elif host == traffic.recorded:
        yield Problem(at, f"it is recorded on {host}: expected another host's archive")
    elif {host, traffic.recorded} not in [set(each.between) for each in scenario.network.all_links]:
        yield Problem(at, f"no link joins {traffic.recorded} and {host}")
    kills = [each for each in scenario.events if each.act.kill and each.whom.process == "archive"]
    if kills:
        yield Problem(at, "a copy ends with either archive: expected no kill of one")


def _merges(scenario: Scenario, traffic: Traffic, path: Path) -> Iterator[Problem]:
    assert traffic.merges is not None
    if traffic.to_hosts != (traffic.recorded,):
        text = "who merges reads the recording of its own host: expected one reader, and "
        yield Problem((*path, "merges"), f"{text}`recorded: {traffic.to_host}`")
    try:
        channel, receive = parse_channel(traffic.channel), parse_channel(traffic.receive)
        ports = {*channel.ports, *receive.ports}
    except ValueError:
        return  # Told of the channels themselves.
    if channel.control_mode != "dynamic":
        text = "a merge needs a stream that takes new readers: expected control-mode=dynamic"
        yield Problem((*path, "channel"), text)
    if traffic.replays is not None or traffic.consume is not None or traffic.partial:
        text = "expected none of replays, consume and partial with it"
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
