"""The connection to the container engine, with a missing and with a simulated engine."""

import json
import os
from dataclasses import asdict
from types import SimpleNamespace

import pytest

from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import (
    containers,
    engine,
)
from windtunnel.harness.orchestrate.teardown.clean import NotAllRemoved
from windtunnel.harness.orchestrate.teardown.state import LabState


def test_missing_engine_is_reported_with_its_address(no_engine):
    with pytest.raises(LabError, match=f"no container engine listens on {no_engine}"):
        containers.require()


def test_without_an_engine_there_are_no_leftovers():
    assert containers.remove_leftovers() == []


class Resource:
    """A container or a network of the simulated engine."""

    def __init__(self, name, *, owner, user=None, fails=None):
        self.name, self._fails, self.is_there = name, fails, True
        self.labels = {engine.TOKEN_LABEL: "0123abcd"}
        if owner is not None:
            self.labels[engine.OWNER_LABEL] = owner
        if user is not None:
            self.labels[engine.USER_LABEL] = str(user)
        self.attrs = {"Labels": self.labels}

    def remove(self, force=False, v=False):
        if self._fails is not None:
            raise self._fails
        self.is_there = False


@pytest.fixture
def play(monkeypatch):
    """Simulate an engine that has these containers and networks."""

    def start(containers_there, networks_there=()):
        client = SimpleNamespace(
            containers=SimpleNamespace(list=lambda **_: list(containers_there)),
            networks=SimpleNamespace(list=lambda **_: list(networks_there)),
            close=lambda: None,
        )
        monkeypatch.setattr(engine, "connect", lambda: client)

    return start


def owner_label(**changed):
    lab = LabState(token="0123abcd", run_id="suite/run", kind="compose")
    return json.dumps({**asdict(lab), **changed})


ODD_OWNERS = [
    *(None, "", "[" * 200_000, "{" * 10, "5", "[]", "9" * 60_000),
    *(owner_label(pid=value) for value in ("../../tmp/x", "1", True, [], 1 << 70, -1)),
    *(owner_label(**{name: {}}) for name in ("started_ticks", "boot_id", "namespaces", "token")),
]


@pytest.mark.parametrize("owner", ODD_OWNERS, ids=lambda text: f"{text!r:.30}")
def test_a_container_with_an_odd_owner_neither_stops_nor_endangers_the_others(play, owner):
    odd = Resource("odd", owner=owner)
    living = Resource("living", owner=owner_label())
    dead = Resource("dead", owner=owner_label(started_ticks=1))
    network = Resource("bridge", owner=owner_label(started_ticks=1))
    play([living, odd, dead], [network])
    removed = containers.remove_leftovers()
    assert removed == ["container odd", "container dead", "network bridge"]
    assert living.is_there


def test_a_living_owner_does_not_protect_what_another_left_with_the_same_token(play):
    dead = Resource("dead", owner=owner_label(started_ticks=1))
    play([dead, Resource("claims", owner=owner_label())])
    assert containers.remove_leftovers() == ["container dead"]


def test_containers_of_another_user_are_left_alone(play):
    dead = owner_label(started_ticks=1)
    theirs = Resource("theirs", owner=dead, user=os.geteuid() + 1)
    play([theirs, Resource("ours", owner=dead, user=os.geteuid())])
    assert containers.remove_leftovers() == ["container ours"]
    assert theirs.is_there


def test_everything_created_is_labelled_with_its_user():
    lab = LabState(token="0123abcd", run_id="suite/run", kind="compose")
    assert engine.labels_of(lab)[engine.USER_LABEL] == str(os.geteuid())


@pytest.mark.parametrize("error", [engine.DockerException("no"), OSError("no")])
def test_a_container_that_cannot_be_removed_does_not_stop_the_others(play, error):
    dead = owner_label(started_ticks=1)
    play([Resource("stuck", owner=dead, fails=error), Resource("dead", owner=dead)])
    with pytest.raises(NotAllRemoved, match="container stuck: no") as caught:
        containers.remove_leftovers()
    assert caught.value.removed == ["container dead"]


def test_a_container_that_has_gone_meanwhile_is_not_a_failure(play):
    play([Resource("gone", owner="", fails=engine.NotFound("gone"))])
    assert containers.remove_leftovers() == []


def test_owner_is_alive_as_long_as_its_process():
    lab = LabState(token="0123abcd", run_id="suite/run", kind="compose")
    label = engine.labels_of(lab)[engine.OWNER_LABEL]
    assert engine.owner_is_alive(label)
    assert not engine.owner_is_alive(label.replace(f'"pid": {lab.pid}', '"pid": 1'))


@pytest.mark.parametrize("label", ["", "{", "[]", '{"pid": 1}'])
def test_a_label_without_an_owner_has_no_living_owner(label):
    assert not engine.owner_is_alive(label)
