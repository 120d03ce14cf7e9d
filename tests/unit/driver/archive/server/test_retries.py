"""Retries while the driver closes an endpoint: by replications, and when an archive starts."""

import pytest

from tests.unit.driver.archive.server.own_archive import own_archive
from tests.unit.driver.archive.server.own_copy import LINGERED, SOURCE_ID, replicate, until_end
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.errors import RegistrationError
from windtunnel.driver.command.command_type import ErrorCode

CLOSING, REFUSED = ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE, ErrorCode.INVALID_CHANNEL
NOBODYS_ID = -5
RESPONSE = "aeron:udp?control-mode=response|control=10.0.0.1:20702"


def refusing(monkeypatch, client, what, code, times, is_meant=lambda channel: True):
    """Let the driver reject what `client` adds a number of times. Returns the attempts."""
    ask, look = getattr(client, f"async_add_{what}"), getattr(client, f"get_{what}")
    asked = []

    def asking(channel, stream_id, **more):
        if not is_meant(channel):
            return ask(channel, stream_id, **more)
        asked.append(channel)
        return NOBODYS_ID if len(asked) <= times else ask(channel, stream_id, **more)

    def looking(registration_id):
        if registration_id == NOBODYS_ID:
            raise RegistrationError(code, "the endpoint found CLOSING", registration_id)
        return look(registration_id)

    monkeypatch.setattr(client, f"async_add_{what}", asking)
    monkeypatch.setattr(client, f"get_{what}", looking)
    return asked


@pytest.mark.parametrize("what", ["subscription", "exclusive_publication"])
def test_the_source_archive_is_connected_to_once_the_endpoint_is_closed(two, monkeypatch, what):
    own, talker, source = two
    end = source.stopped_recording(10, archive_id=SOURCE_ID).end
    own.run_for(LINGERED)
    client = own.archive._conductor._resources.client
    asked = refusing(
        monkeypatch, client, what, CLOSING, 3,
        # The channel of the replay is not that of the control session.
        lambda channel: "rejoin=false" not in channel,
    )  # fmt: skip
    answer = replicate(talker, replication_channel="aeron:ipc")
    assert until_end(own, talker, answer.relevant_id, "STOP")[-1] == ("STOP", 0, end)
    assert len(asked) == 4


@pytest.mark.parametrize("what", ["subscription", "exclusive_publication"])
def test_what_is_refused_for_good_is_told(two, monkeypatch, what):
    own, talker, _ = two
    client = own.archive._conductor._resources.client
    refusing(monkeypatch, client, what, REFUSED, 1)
    answer = replicate(talker)
    assert until_end(own, talker, answer.relevant_id) == [
        ("ERROR", 14), ("REPLICATE_END", -1, -1)
    ]  # fmt: skip


def test_the_way_by_which_a_replay_is_asked_for_is_asked_again(two, monkeypatch):
    own, talker, source = two
    source.stopped_recording(10, archive_id=SOURCE_ID)
    client = own.archive._conductor._resources.client
    asked = refusing(
        monkeypatch, client, "exclusive_publication", CLOSING, 3,
        lambda channel: "response-correlation-id" in channel,
    )  # fmt: skip
    answer = replicate(talker, replication_channel=RESPONSE)
    own.until(lambda: len(asked) == 4)
    assert not talker.answers(answer.relevant_id)[-1].error_message


@pytest.mark.parametrize(("code", "times"), [(CLOSING, 3), (REFUSED, 1)])
def test_an_archive_that_starts_waits_for_a_closing_endpoint(tmp_path, monkeypatch, code, times):
    add, asked = Aeron.add_subscription, []

    def adding(self, channel, stream_id, **more):
        asked.append(channel)
        if len(asked) <= times:
            raise RegistrationError(code, "the endpoint found CLOSING", NOBODYS_ID)
        return add(self, channel, stream_id, **more)

    monkeypatch.setattr(Aeron, "add_subscription", adding)
    if code == CLOSING:
        with own_archive(tmp_path, monkeypatch):
            assert len(asked) == times + 1
    else:
        with pytest.raises(RegistrationError), own_archive(tmp_path, monkeypatch):
            pass
