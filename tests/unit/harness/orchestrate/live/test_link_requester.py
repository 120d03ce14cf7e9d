"""Requests to a relay, which is represented by its log and a process that receives signals."""

from pathlib import Path
from unittest.mock import patch

import pytest

from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.live import link_requester
from windtunnel.harness.orchestrate.live.link_requester import LinkRequester
from windtunnel.harness.orchestrate.live.live_scenario import OptionError
from windtunnel.harness.orchestrate.processes.watch import WatchedProcess
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
from windtunnel.harness.scenario.resolved.link_change import CHANGE_SIGNAL, LinkRequests

IMPAIRMENTS = (ImpairmentCase(link="a->b"), ImpairmentCase(link="b->a"))


class Relay:
    """A process that only counts its signals."""

    name = "mid/relay"

    def __init__(self) -> None:
        self.signals: list[int] = []

    def send_signal(self, number: int) -> None:
        self.signals.append(number)


@pytest.fixture
def relay() -> Relay:
    return Relay()


@pytest.fixture
def requester(tmp_path: Path, relay: Relay) -> LinkRequester:
    log = tmp_path / "relay.log"
    log.write_text("ready to-a to-b\n")
    return LinkRequester(RunDir(tmp_path), WatchedProcess("mid/relay", relay, "relay", log))


def test_a_request_is_written_before_the_relay_is_signalled(
    tmp_path: Path, requester: LinkRequester, relay: Relay
) -> None:
    assert (requester.request(IMPAIRMENTS), requester.request(IMPAIRMENTS[:1])) == (1, 2)
    found = LinkRequests.read(RunDir(tmp_path).link_requests)
    assert found is not None
    assert [(each.number, len(each.impairments)) for each in found.requests] == [(1, 2), (2, 1)]
    assert relay.signals == [CHANGE_SIGNAL] * 2


def test_a_request_is_applied_when_the_relay_says_so(
    tmp_path: Path, requester: LinkRequester
) -> None:
    first, second = requester.request(IMPAIRMENTS), requester.request(IMPAIRMENTS)
    assert not requester.is_applied(first)
    with (tmp_path / "relay.log").open("a") as log:
        log.write("changed 1\nchanged\nchanged x\nunchanged 9\n")
    assert requester.is_applied(first)
    assert not requester.is_applied(second)
    # One signal may stand for two requests.
    with (tmp_path / "relay.log").open("a") as log:
        log.write("changed 2\n")
    assert requester.is_applied(second)


def test_the_number_of_changes_is_limited(requester: LinkRequester) -> None:
    with patch.object(link_requester, "CHANGES_MAX", 3):
        requester.request(IMPAIRMENTS)
        with pytest.raises(OptionError, match="at most 3 times"):
            requester.request(IMPAIRMENTS)
        requester.request(IMPAIRMENTS[:1])
