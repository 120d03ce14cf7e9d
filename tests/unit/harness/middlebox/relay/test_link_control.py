"""Changes of links, which the relay applies between two turns."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.harness.middlebox.synthetic_case import case
from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.middlebox.impairment import impairment as columns
from windtunnel.harness.middlebox.impairment.impairment import Impairments, make_impairments
from windtunnel.harness.middlebox.impairment.impairment_settings import (
    DELAY_NS,
    GOOD_LOSS,
    MODEL,
    NO_LOSS,
    ON,
    ONE_STATE,
)
from windtunnel.harness.middlebox.relay.drain import DRAIN_NS_MIN
from windtunnel.harness.middlebox.relay.link_control import LinkControl
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase, LossCase
from windtunnel.harness.scenario.resolved.link_change import (
    CHANGE_SIGNAL,
    LinkRequest,
    LinkRequests,
    read_changes,
)

A_TO_B, B_TO_A = 0, 1
ALL = LossCase(model="iid", shares_ppb=(1_000_000_000,))
PARTITION = tuple(ImpairmentCase(link=link, loss=ALL) for link in ("a->b", "b->a"))
SLOW = ImpairmentCase(link="b->a", delay_ns=9_000_000_000)


@pytest.fixture(autouse=True)
def restored_signal() -> Iterator[None]:
    before = signal.getsignal(CHANGE_SIGNAL)
    yield
    signal.signal(CHANGE_SIGNAL, before)


def live_case() -> Case:
    impairments = tuple(ImpairmentCase(link=link) for link in ("a->b", "b->a"))
    return case().model_copy(update={"live": True, "impairments": impairments})


def request_changes(folder: RunDir, *requests: LinkRequest) -> None:
    LinkRequests(requests=requests).write(folder.link_requests)
    os.kill(os.getpid(), CHANGE_SIGNAL)


@pytest.fixture
def impairments() -> Impairments:
    return make_impairments(live_case(), 1500)


@pytest.fixture
def relay(impairments: Impairments) -> Any:
    return SimpleNamespace(impairments=impairments)


def test_a_request_changes_the_settings_and_is_recorded(
    tmp_path: Path, impairments: Impairments, relay: Any
) -> None:
    folder = RunDir(tmp_path)
    control = LinkControl(live_case(), folder, clock=iter([10, 11, 12]).__next__)
    assert read_changes(folder.link_changes, live_case()) == ()
    assert control.update(relay) == []
    impairments.counts[A_TO_B, columns.RECEIVED] = 7
    impairments.counts[A_TO_B, columns.LOST] = 2
    impairments.state[A_TO_B, columns.CHAIN] = 1
    request_changes(folder, LinkRequest(number=1, impairments=PARTITION))
    assert control.update(relay) == [1]
    for link in (A_TO_B, B_TO_A):
        row = impairments.settings[link]
        assert (row[ON], row[MODEL], row[GOOD_LOSS]) == (1, ONE_STATE, 1 << 32)
    assert impairments.state[A_TO_B, columns.CHAIN] == 0
    first, second = read_changes(folder.link_changes, live_case()) or ()
    assert (first.number, first.at_ns, first.impairments) == (1, 10, PARTITION[0])
    assert (first.counts.received, first.counts.lost) == (7, 2)
    assert (second.at_ns, second.counts.received) == (11, 0)
    # The first request stays in the file, and is not applied again.
    request_changes(
        folder,
        LinkRequest(number=1, impairments=PARTITION),
        LinkRequest(number=2, impairments=(ImpairmentCase(link="a->b"),)),
    )
    assert control.update(relay) == [2]
    assert impairments.settings[A_TO_B][MODEL] == NO_LOSS
    assert impairments.settings[B_TO_A][MODEL] == ONE_STATE
    assert len(read_changes(folder.link_changes, live_case()) or ()) == 3


def test_a_long_delay_is_waited_for_at_the_end(
    tmp_path: Path, impairments: Impairments, relay: Any
) -> None:
    control = LinkControl(live_case(), RunDir(tmp_path))
    assert control.drain_ns(1500) == DRAIN_NS_MIN
    slow = SLOW.model_copy(update={"delay_ns": 30_000_000_000})
    request_changes(RunDir(tmp_path), LinkRequest(number=1, impairments=(slow,)))
    control.update(relay)
    request_changes(
        RunDir(tmp_path), LinkRequest(number=2, impairments=(ImpairmentCase(link="b->a"),))
    )
    control.update(relay)
    assert impairments.settings[B_TO_A][DELAY_NS] == 0
    assert control.drain_ns(1500) > 30_000_000_000


def test_a_request_that_the_harness_never_makes_is_refused(
    tmp_path: Path, impairments: Impairments, relay: Any
) -> None:
    folder = RunDir(tmp_path)
    control = LinkControl(live_case(), folder)
    request_changes(folder, LinkRequest(number=1, impairments=(ImpairmentCase(link="a->c"),)))
    with pytest.raises(DocumentError, match=r"link-requests.json: request 1: .*a->c"):
        control.update(relay)
    folder.link_requests.write_text(json.dumps({"schema": "windtunnel-link-requests/1", "x": 1}))
    os.kill(os.getpid(), CHANGE_SIGNAL)
    with pytest.raises(DocumentError, match="extra inputs are not permitted"):
        control.update(relay)


def test_other_runs_have_no_changes(tmp_path: Path) -> None:
    LinkControl(case(), RunDir(tmp_path))
    assert not RunDir(tmp_path).link_changes.exists()


def test_any_delay_fits_into_the_pool(impairments: Impairments) -> None:
    assert len(impairments.held.records) > 150_000
    assert impairments.held.buf.shape[1] == 1500
    fixed = make_impairments(live_case().model_copy(update={"live": False}), 1500)
    assert len(fixed.held.records) < 150_000
