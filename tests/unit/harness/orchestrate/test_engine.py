"""What is known of the container engine without one."""

import pytest

from harness.orchestrate import containers, engine
from harness.orchestrate.lab import LabError
from harness.orchestrate.state import LabState


@pytest.fixture(autouse=True)
def no_engine(tmp_path, monkeypatch):
    path = tmp_path / "engine.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    monkeypatch.delenv(containers.INSIDE_VARIABLE, raising=False)
    return path


def test_missing_engine_is_told_with_its_address(no_engine):
    with pytest.raises(LabError, match=f"no container engine listens at {no_engine}"):
        containers.require()


def test_where_no_engine_is_nothing_is_left_over():
    assert containers.remove_left_overs() == []


def test_crew_that_never_started_has_nothing_to_remove(tmp_path):
    lab = LabState(token="0123abcd", run_id="suite/run", kind="compose")
    crew = engine.HiredCrew(lab, tmp_path / ".lab", ["a", "b", "mid"], tmp_path)
    crew.remove()
    with pytest.raises(LabError, match="no container engine"):
        crew.start()
    crew.remove()


def test_owner_is_alive_as_long_as_its_process():
    lab = LabState(token="0123abcd", run_id="suite/run", kind="compose")
    label = engine.labels_of(lab)[engine.OWNER_LABEL]
    assert engine.owner_is_alive(label)
    assert not engine.owner_is_alive(label.replace(f'"pid": {lab.pid}', '"pid": 1'))


@pytest.mark.parametrize("label", ["", "{", "[]", '{"pid": 1}'])
def test_label_that_names_nobody_has_no_living_owner(label):
    assert not engine.owner_is_alive(label)


def test_mounts_take_the_folders_of_the_lab(tmp_path):
    from harness.orchestrate import compose_file

    lab = LabState(token="0123abcd", run_id="suite/run", kind="compose")
    crew = engine.HiredCrew(lab, tmp_path / ".lab", ["a", "mid"], tmp_path)
    plan = compose_file.plan(compose_file.read(), "a")
    assert crew._volumes(plan.mounts) == {
        str(compose_file.REPOSITORY): {"bind": "/windtunnel", "mode": "ro"},
        str(tmp_path): {"bind": "/windtunnel/runs", "mode": "rw"},
        str(tmp_path / ".lab" / "0123abcd.control"): {"bind": "/control", "mode": "rw"},
        "windtunnel-kernels": {"bind": "/kernels", "mode": "rw"},
    }
