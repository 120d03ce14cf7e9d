"""Replications, and an archive that starts, retry while the driver closes an endpoint."""

import pytest

from tests.unit.driver.archive.server.own_archive import own_archive
from tests.unit.driver.archive.server.own_copy import LINGERED, SOURCE_ID, replicate, until_end
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.errors import RegistrationError
from windtunnel.driver.command.command_type import ErrorCode

CLOSING, REFUSED = ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE, ErrorCode.INVALID_CHANNEL
UNKNOWN_ID = -5
RESPONSE = "aeron:udp?control-mode=response|control=10.0.0.1:20702"


def reject(monkeypatch, aeron, what, code, times, matches=lambda channel: True):
    """Reject the client's first `times` commands of one kind. Returns the channels of all."""
    add, get = getattr(aeron, f"async_add_{what}"), getattr(aeron, f"get_{what}")
    attempts = []

    def adding(channel, stream_id, **more):
        if not matches(channel):
            return add(channel, stream_id, **more)
        attempts.append(channel)
        return UNKNOWN_ID if len(attempts) <= times else add(channel, stream_id, **more)

    def getting(registration_id):
        if registration_id == UNKNOWN_ID:
            raise RegistrationError(code, "the endpoint found CLOSING", registration_id)
        return get(registration_id)

    monkeypatch.setattr(aeron, f"async_add_{what}", adding)
    monkeypatch.setattr(aeron, f"get_{what}", getting)
    return attempts


@pytest.mark.parametrize("what", ["subscription", "exclusive_publication"])
def test_a_replication_connects_once_the_endpoint_is_closed(two, monkeypatch, what):
    env, client, source = two
    end = source.stopped_recording(10, archive_id=SOURCE_ID).end
    env.run_for(LINGERED)
    aeron = env.archive._conductor._resources.client
    attempts = reject(
        monkeypatch, aeron, what, CLOSING, 3,
        # The channel of the replay is not that of the control session.
        lambda channel: "rejoin=false" not in channel,
    )  # fmt: skip
    response = replicate(client, replication_channel="aeron:ipc")
    assert until_end(env, client, response.relevant_id, "STOP")[-1] == ("STOP", 0, end)
    assert len(attempts) == 4


@pytest.mark.parametrize("what", ["subscription", "exclusive_publication"])
def test_a_permanent_rejection_ends_the_replication(two, monkeypatch, what):
    env, client, _ = two
    aeron = env.archive._conductor._resources.client
    reject(monkeypatch, aeron, what, REFUSED, 1)
    response = replicate(client)
    assert until_end(env, client, response.relevant_id) == [
        ("ERROR", 14), ("REPLICATE_END", -1, -1)
    ]  # fmt: skip


def test_the_request_publication_of_a_response_channel_is_retried(two, monkeypatch):
    env, client, source = two
    source.stopped_recording(10, archive_id=SOURCE_ID)
    aeron = env.archive._conductor._resources.client
    attempts = reject(
        monkeypatch, aeron, "exclusive_publication", CLOSING, 3,
        lambda channel: "response-correlation-id" in channel,
    )  # fmt: skip
    response = replicate(client, replication_channel=RESPONSE)
    env.until(lambda: len(attempts) == 4)
    assert not client.responses_to(response.relevant_id)[-1].error_message


@pytest.mark.parametrize(("code", "times"), [(CLOSING, 3), (REFUSED, 1)])
def test_an_archive_that_starts_waits_for_a_closing_endpoint(tmp_path, monkeypatch, code, times):
    add, attempts = Aeron.add_subscription, []

    def adding(self, channel, stream_id, **more):
        attempts.append(channel)
        if len(attempts) <= times:
            raise RegistrationError(code, "the endpoint found CLOSING", UNKNOWN_ID)
        return add(self, channel, stream_id, **more)

    monkeypatch.setattr(Aeron, "add_subscription", adding)
    if code == CLOSING:
        with own_archive(tmp_path, monkeypatch):
            assert len(attempts) == times + 1
    else:
        with pytest.raises(RegistrationError), own_archive(tmp_path, monkeypatch):
            pass
