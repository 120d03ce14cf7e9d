"""The order of measurements, with synthetic drivers."""

import pytest

from windtunnel.harness.bench import rounds
from windtunnel.harness.bench.measure import Reading
from windtunnel.harness.bench.plan import BenchSettings
from windtunnel.harness.bench.subject import driver_directory
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.subjects import peers


@pytest.fixture
def seen(monkeypatch):
    """Every measurement (driver, case, round, seconds) in order, after the set of folders."""
    events, folders = [], set()

    class FakeHost:
        def __init__(self, subject, settings, folder):
            self.subject, self.is_alive = subject, True
            directories.append(driver_directory(settings, folder))
            folder.mkdir(parents=True)
            folders.add(folder)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    def measure(case, host, settings, folder, round_index):
        events.append((host.subject.name, case.name, round_index, settings.seconds))
        if case.name == "udp-32" and host.subject.name == "ours" and round_index == 1:
            host.is_alive = False
            return Reading(host.subject.name, case.name, round_index, void="the driver exited")
        return Reading(host.subject.name, case.name, round_index, {"messages": 1.0})

    directories = FakeHost.directories = []
    monkeypatch.setattr(rounds, "DriverHost", FakeHost)

    def measure_swarm(settings, folder, round_index):
        events.append(("ours", "swarm", round_index, settings.seconds))
        return Reading("ours", "swarm", round_index, {"trials": 1.0, "frames": 1.0})

    class FakeArchive(FakeHost):
        def __init__(self, subject, settings, folder, control_channel):
            super().__init__(subject, settings, folder)
            channels.append(control_channel)

    def measure_archive(case, host, settings, folder, round_index):
        events.append((f"{host.subject.name} archive", case.name, round_index, settings.seconds))
        host.is_alive = (host.subject.name, round_index) != ("java", 1)
        return Reading(host.subject.name, case.name, round_index, {"record-messages": 1.0})

    channels = []
    monkeypatch.setattr(rounds, "ArchiveHost", FakeArchive)
    monkeypatch.setattr(rounds, "measure_archive", measure_archive)
    monkeypatch.setattr(peers, "java_problem", lambda: "")
    monkeypatch.setattr(rounds, "measure", measure)
    monkeypatch.setattr(rounds, "measure_swarm", measure_swarm)
    monkeypatch.setattr(rounds, "c_version", lambda: "0.1.0")
    events.append(folders)
    return events


def run(settings):
    reported = []
    return rounds.run_rounds(settings, lambda *_: None, reported.append), reported


def test_drivers_take_turns_after_a_round_that_does_not_count(seen):
    readings, reported = run(BenchSettings(rounds=2, seconds=2.0, cases=("startup", "rtt-ipc")))
    assert seen[1:] == [
        ("ours", "startup", -1, 0.2),
        ("ours", "rtt-ipc", -1, 0.2),
        ("c", "startup", -1, 0.2),
        *(
            (driver, case, number, 2.0)
            for number in (0, 1)
            for driver in ("ours", "c")
            for case in ("startup", "rtt-ipc")
        ),
    ]
    assert readings == reported
    assert len(readings) == 8


def test_a_case_with_losses_has_its_own_driver(seen):
    cases = ("udp-32", "udp-1344-loss", "ipc-32")
    run(BenchSettings(rounds=1, drivers=("c",), cases=cases))
    order = [case for _, case, number, _ in seen[1:] if number == 0]
    assert order == ["udp-32", "ipc-32", "udp-1344-loss"]
    names = [folder.name for folder in seen[0]]
    assert sorted(names) == ["c--1-0", "c--1-1", "c-0-0", "c-0-1"]


def test_a_driver_that_exited_is_not_measured_again_in_its_round(seen):
    readings, _ = run(BenchSettings(rounds=2, cases=("udp-32", "ipc-32")))
    assert [(each.driver, each.case) for each in readings if each.round_index == 1] == [
        ("ours", "udp-32"),
        ("c", "udp-32"),
        ("c", "ipc-32"),
    ]


def test_nothing_is_left_behind(seen):
    run(BenchSettings(rounds=1, cases=("startup",)))
    assert seen[0]
    assert not [folder for folder in seen[0] if folder.parent.exists()]


def test_the_directories_of_all_drivers_are_in_the_given_one(seen, tmp_path):
    run(BenchSettings(rounds=1, cases=("startup", *BOTH), memory=str(tmp_path)))
    (directory,) = set(rounds.DriverHost.directories)
    assert len(rounds.DriverHost.directories) == 7
    assert directory.name == "aeron"
    assert directory.parent.parent == tmp_path
    assert not list(tmp_path.iterdir())


def test_without_the_real_driver_nothing_is_started(seen, monkeypatch):
    monkeypatch.setattr(rounds, "c_version", lambda: None)
    with pytest.raises(LabError, match="--drivers ours"):
        run(BenchSettings())
    assert seen[1:] == []
    assert run(BenchSettings(rounds=1, cases=("startup",), drivers=("ours",)))[0]


BOTH = ("archive-1344", "archive-64")


def test_archives_take_turns_each_in_a_folder_of_its_own(seen):
    readings, reported = run(BenchSettings(rounds=2, seconds=2.0, cases=("startup", *BOTH)))
    assert [each for each in seen[1:] if "archive" in each[0]] == [
        *(("ours archive", case, -1, 0.2) for case in BOTH),
        *(("ours archive", case, 0, 2.0) for case in BOTH),
        *(("java archive", case, 0, 2.0) for case in BOTH),
        *(("ours archive", case, 1, 2.0) for case in BOTH),
        # It exited in its first case, and is not measured again in its round.
        ("java archive", BOTH[0], 1, 2.0),
    ]
    assert readings == reported
    folders = [each for each in seen[0] if each.name.startswith("archive-")]
    assert len(folders) == 5
    assert not [folder for folder in folders if folder.parent.exists()]


def test_an_archive_that_is_not_installed_is_left_out(seen, monkeypatch):
    monkeypatch.setattr(peers, "java_problem", lambda: "no jar")
    readings, _ = run(BenchSettings(rounds=1, cases=BOTH))
    assert [(each.driver, each.case) for each in readings] == [("ours", case) for case in BOTH]
    seen[1:] = []
    assert run(BenchSettings(rounds=1, cases=BOTH, drivers=("java", "c"))) == ([], [])
    assert seen[1:] == []


def test_recordings_that_could_fill_their_file_system_are_rejected_before_the_start(seen):
    with pytest.raises(LabError, match=r"recordings need .* bytes in .* are free"):
        run(BenchSettings(rounds=1, cases=BOTH, recording_bytes=1 << 60))
    assert seen[1:] == []


def test_swarm_comes_after_the_drivers_and_needs_none_of_them(seen):
    readings, reported = run(BenchSettings(rounds=2, seconds=2.0, cases=("startup", "swarm")))
    assert seen[-3:] == [
        ("ours", "startup", 1, 2.0),
        ("c", "startup", 1, 2.0),
        ("ours", "swarm", 1, 2.0),
    ]
    assert readings == reported
    seen[1:] = []
    run(BenchSettings(rounds=2, seconds=2.0, cases=("swarm",)))
    assert seen[1:] == [("ours", "swarm", 0, 2.0), ("ours", "swarm", 1, 2.0)]
    seen[1:] = []
    run(BenchSettings(rounds=1, cases=("startup", "swarm"), drivers=("c",)))
    assert not [each for each in seen[1:] if each[1] == "swarm"]
