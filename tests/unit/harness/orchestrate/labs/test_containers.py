"""The container lab before any container exists: addresses, paths, and refusals."""

import pytest

from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import containers
from windtunnel.harness.orchestrate.labs.containers import ComposeContainers, ComposeLab
from windtunnel.harness.orchestrate.precompile import precompile
from windtunnel.harness.topology import model


@pytest.fixture
def runs(tmp_path):
    return tmp_path / "runs"


@pytest.fixture
def lab(runs, monkeypatch):
    monkeypatch.setenv(containers.INSIDE_VARIABLE, "1")
    topology = model.build("suite/run", ["a", "b"], ("a", "b"))
    return ComposeLab(topology, runs / ".lab", runs)


def test_addresses_are_those_of_the_run_and_known_before_it_is_up(lab):
    assert [lab.address(host) for host in "ab"] == list(lab.topology.addresses.values())


def test_paths_of_a_run_are_found_below_the_mount(lab, runs):
    assert lab.path(runs / "suite" / "run" / "case.json") == "/windtunnel/runs/suite/run/case.json"


@pytest.mark.parametrize("path", ["elsewhere/file", "runs/../elsewhere", "runs-too/file"])
def test_a_path_outside_the_mounts_is_refused(lab, tmp_path, path):
    with pytest.raises(LabError, match="no container has access to it"):
        lab.path(tmp_path / path)


def test_a_lab_that_is_not_up_spawns_nothing(lab, runs):
    with pytest.raises(LabError, match="no container for a"):
        lab.spawn("a", ["true"], log=runs / "x.log")


def test_down_before_up_and_a_second_down_have_no_effect(lab):
    lab.down()
    lab.down()


def test_containers_of_compose_up_are_used_inside_only(lab, runs, monkeypatch):
    assert isinstance(lab._containers, ComposeContainers)
    monkeypatch.setenv(containers.INSIDE_VARIABLE, "0")
    outside = ComposeLab(lab.topology, runs / ".lab", runs)
    assert not isinstance(outside._containers, ComposeContainers)


@pytest.mark.full
def test_a_run_inside_a_container_needs_no_engine_and_has_no_leftovers(tmp_path, monkeypatch):
    monkeypatch.setenv(containers.INSIDE_VARIABLE, "1")
    monkeypatch.setenv(precompile.CACHE_VARIABLE, str(tmp_path))
    (tmp_path / precompile.mark_name(tmp_path)).touch()
    assert containers.remove_leftovers() == []
    containers.require()


def test_inside_a_container_kernels_are_compiled_before_the_first_run(tmp_path, monkeypatch):
    monkeypatch.setenv(containers.INSIDE_VARIABLE, "1")
    monkeypatch.setenv(precompile.CACHE_VARIABLE, str(tmp_path))
    filled = []
    monkeypatch.setattr(precompile, "compile_all", filled.append)
    containers.require()
    assert filled == [tmp_path]


def lab_of(runs, *hosts):
    return ComposeLab(model.build("suite/run", hosts, hosts), runs / ".lab", runs)


@pytest.mark.parametrize("hosts", [("a", "b", "c"), ("x", "y")])
def test_inside_a_lab_with_other_hosts_is_refused_before_anything_starts(runs, monkeypatch, hosts):
    monkeypatch.setenv(containers.INSIDE_VARIABLE, "1")
    monkeypatch.delenv("WINDTUNNEL_CONTROL", raising=False)
    with pytest.raises(LabError, match="`docker compose up` starts only the hosts a, b"):
        lab_of(runs, *hosts).up()
    assert not runs.exists()


def test_outside_a_lab_may_have_any_hosts(monkeypatch):
    monkeypatch.delenv(containers.INSIDE_VARIABLE, raising=False)
    containers.require_hosts(("a", "b", "c"))


def test_missing_agents_leave_no_containers(lab, runs, tmp_path, monkeypatch):
    monkeypatch.setenv("WINDTUNNEL_CONTROL", str(tmp_path))
    monkeypatch.setattr(containers, "CONNECT_TIMEOUT_S", 0.05)
    with pytest.raises(LabError, match="no agent for a could be reached"):
        lab.up()
    assert list((runs / ".lab").iterdir()) == []
    assert not lab.state.memory_directory().exists()
