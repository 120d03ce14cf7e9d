"""A request to add a publication: which publication it shares, and which session id it gets."""

from random import Random
from types import SimpleNamespace

import pytest

from windtunnel.driver.channel import publication_parameters, uri
from windtunnel.driver.channel.publication_parameters import PublicationDefaults
from windtunnel.driver.media_driver.conductor.publications.publication_log import State
from windtunnel.driver.media_driver.conductor.publications.publication_request import (
    PublicationRequest,
)
from windtunnel.driver.media_driver.conductor.publications.session_ids import SessionIds


def request(channel="aeron:ipc", *, is_exclusive=False):
    parameters = publication_parameters.parse(uri.parse(channel), PublicationDefaults())
    return PublicationRequest(1, 2, 1001, channel, parameters, is_exclusive)


def publication(channel="aeron:ipc", state=State.ACTIVE, *, session_id=5, is_exclusive=False):
    return SimpleNamespace(
        parameters=request(channel).parameters, state=state, session_id=session_id,
        is_exclusive=is_exclusive,
    )  # fmt: skip


def test_the_active_concurrent_publication_of_the_same_response_is_shared():
    shared = publication()
    others = [
        publication(is_exclusive=True), publication(state=State.DRAINING),
        publication("aeron:ipc?response-correlation-id=7"),
    ]  # fmt: skip
    assert request().find_shared([*others, shared]) is shared
    assert request().find_shared(others) is None


def test_an_exclusive_publication_is_not_shared():
    assert request(is_exclusive=True).find_shared([publication()]) is None


def test_a_requested_session_id_is_used_unless_the_stream_has_it():
    ids = SessionIds(Random(1), -1, 1000)
    wanted = request("aeron:ipc?session-id=7")
    assert ids.choose(wanted, [publication(session_id=8)]) == 7
    message = "session-id=7: a publication of stream 1001 on 'aeron:ipc.session-id=7' already has"
    with pytest.raises(uri.InvalidChannelError, match=message):
        ids.choose(wanted, [publication(session_id=8), publication(session_id=7)])


def test_a_session_id_that_is_not_requested_is_one_that_the_stream_does_not_have():
    first = SessionIds(Random(1), -1, 1000).next(())
    chosen = SessionIds(Random(1), -1, 1000).choose(request(), [publication(session_id=first)])
    assert chosen == first + 1
