"""A workload of an archive writes its document, also if it fails or is stopped."""

import pytest

from tests.unit.harness.workload.small_case import small_case
from windtunnel.driver.archive.client import ArchiveError
from windtunnel.harness.artifact.host.application import PublisherFacts
from windtunnel.harness.artifact.host.recording import Recorded, RecorderFacts
from windtunnel.harness.artifact.run_dir import HostDir
from windtunnel.harness.workload.archive import archive_workload
from windtunnel.harness.workload.options import Options
from windtunnel.harness.workload.stop import Stop, Stopped

RECORDED = Recorded(1, 2, 3, 4, 4)


def options(folder, role):
    case = small_case(folder)
    return Options(role, case, case.traffic[0], folder, HostDir(folder / "host"), sabotage="")


def routine(fails_with=None):
    """A routine that notes a recording, then ends or fails."""

    def make(_, facts, surroundings):
        if isinstance(facts, RecorderFacts):
            facts.recordings = [RECORDED]
        yield 0
        if fails_with is not None:
            raise fails_with

    return make


@pytest.mark.parametrize(("role", "name"), [("recorder", "record"), ("replicator", "replicate")])
def test_a_recording_is_documented(role, name, tmp_path, monkeypatch):
    monkeypatch.setattr(archive_workload, name, routine())
    chosen = options(tmp_path, role)
    archive_workload.run(chosen, Stop())
    found = RecorderFacts.read(chosen.files.recorder(chosen.traffic.id).document)
    assert (found.recordings, found.error) == ([RECORDED], None)
    assert found.ended_ns >= found.started_ns > 0


def test_a_failed_replay_is_documented_in_place_of_a_publisher(tmp_path, monkeypatch):
    monkeypatch.setattr(archive_workload, "replay", routine(ArchiveError("no such recording")))
    chosen = options(tmp_path, "replayer")
    with pytest.raises(ArchiveError):
        archive_workload.run(chosen, Stop())
    found = PublisherFacts.read(chosen.files.publisher(chosen.traffic.id).document)
    assert found.error == "no such recording"


def test_a_stopped_recorder_documents_what_it_knows(tmp_path, monkeypatch):
    monkeypatch.setattr(archive_workload, "record", routine())
    chosen, stop = options(tmp_path, "recorder"), Stop()
    stop.request(15)
    with pytest.raises(Stopped):
        archive_workload.run(chosen, stop)
    found = RecorderFacts.read(chosen.files.recorder(chosen.traffic.id).document)
    assert (found.recordings, found.error) == ([RECORDED], "stopped by SIGTERM")
