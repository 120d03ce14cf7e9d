"""The channels on which a replication records and requests its replay."""

import pytest

from windtunnel.driver.archive.replication import replication_channels as channels
from windtunnel.driver.archive.replication.replication_channels import ReplicationChannels
from windtunnel.driver.archive.settings.archive_settings import ArchiveSettings
from windtunnel.driver.channel import uri

UDP = "aeron:udp?endpoint=h:0|interface=i"


def channels_of(text=UDP, live="", tags=None):
    return ReplicationChannels(uri.parse(text), live, tags)


def test_without_merge_the_recorded_channel_is_that_of_the_replay():
    plain = channels_of()
    assert str(plain.to_record(5, 9)) == UDP + "|rejoin=false|session-id=5"
    assert str(plain.to_replay(5, 7, "10.0.0.1:4321")) == (
        "aeron:udp?endpoint=h:4321|interface=i|session-id=5"
    )
    assert not plain.has_destinations


@pytest.mark.parametrize(("tags", "expected"), [((3, 4), "3,4"), ((3, -1), "3,9"), (None, "9,9")])
def test_with_merge_the_recorded_channel_has_manual_destinations(tags, expected):
    merged = channels_of(live="aeron:udp?endpoint=h:5", tags=tags)
    assert str(merged.to_record(5, 9)) == (
        f"aeron:udp?interface=i|rejoin=false|session-id=5|tags={expected}|control-mode=manual"
    )
    assert merged.replay_destination == UDP
    assert str(merged.to_replay(5, 7, "10.0.0.1:4321")).endswith("|linger=0|eos=false|session-id=5")


def test_a_response_channel_has_no_session():
    response = channels_of("aeron:udp?control-mode=response|control=h:1")
    assert str(response.to_record(5, 9)).endswith("|rejoin=false")
    assert str(response.to_replay(5, 7, None)).endswith("|response-correlation-id=7")


def test_an_explicit_port_is_kept():
    assert "endpoint=h:8" in str(channels_of("aeron:udp?endpoint=h:8").to_replay(1, 2, "h:9"))
    assert str(channels_of("aeron:ipc").to_replay(1, 2, None)) == "aeron:ipc?session-id=1"


def test_the_response_channel_uses_the_host_of_the_control_channel():
    settings = ArchiveSettings(control_channel="aeron:udp?endpoint=me:8010")
    assert channels.response_channel(settings) == "aeron:udp?endpoint=me:0"
    settings = ArchiveSettings(control_response_channel="aeron:udp?endpoint=x:1")
    assert channels.response_channel(settings) == "aeron:udp?endpoint=x:1"
    requested = channels.control_channel("aeron:udp?endpoint=x:1|mtu=2k", settings)
    assert str(requested) == "aeron:udp?endpoint=x:1|mtu=2k|term-length=65536|sparse=true"
