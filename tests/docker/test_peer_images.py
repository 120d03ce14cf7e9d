"""Drivers in separate images are checked by `windtunnel peer check`, and are peers in runs."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.docker.leftovers import leftovers
from tests.docker.test_lab_in_containers import CHANNEL, PUBLISHER, READER, STREAM
from tests.netns.test_real_aeron import SCENARIO
from tests.soundness import assert_sound
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.cli.root import windtunnel
from windtunnel.harness.installation import ROOT as REPOSITORY
from windtunnel.harness.lab import open_lab
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.run import phases
from windtunnel.harness.orchestrate.subjects import peers
from windtunnel.harness.orchestrate.suite.matrix import MatrixSpec, run_matrix
from windtunnel.harness.orchestrate.suite.runner import run_suite

pyaeron = pytest.importorskip("pyaeron")
pytestmark = [
    pytest.mark.docker,
    pytest.mark.peer,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(privileges.missing()), reason="files of containers are root's"),
    pytest.mark.skipif(sys.version_info[:2] != (3, 13), reason="the image has Python 3.13"),
]
NAME = "windtunnel-test-peer"
DOCKERFILE = """
FROM windtunnel:local
COPY pyaeron /packages/pyaeron
COPY c_driver.py /
ENV PYTHONPATH=/packages
ENTRYPOINT ["sh", "-c", "[ \\"$WINDTUNNEL_CONTRACT\\" = 1 ] || exit 127; exec python /c_driver.py"]
"""
CNC = "$AERON_DIR/cnc.dat"
HOSTILE = (
    'open(f"{os.environ["AERON_DIR"]}/cnc.dat", "wb").write(b"\\0\\2\\0\\0" + b"\\xff" * 8192)'
)
IMAGES = {
    "ends": (
        "echo no licence; exit 3",
        "start",
        "it ended with exit code 3; the last lines of its",
    ),
    "silent": ("exec sleep 600", "cnc", "cnc.dat does not exist, after 3 s; its log is empty"),
    "floods": ("exec yes", "start", "the log exceeds 4194304 bytes"),
    "links": (f"mkdir $AERON_DIR; ln -s /etc/passwd {CNC}; exec sleep 600", "cnc", "symbolic link"),
    "waits": (f"mkdir $AERON_DIR; mkfifo {CNC}; exec sleep 600", "cnc", "found a FIFO"),
    "leaves": ("ln -s /windtunnel $AERON_DIR; exec sleep 600", "cnc", "found a symbolic link"),
    "hostile": (
        f"mkdir $AERON_DIR; python -c 'import os; {HOSTILE}'; exec sleep 600",
        *("cnc", "section lengths: expected at least 0"),
    ),
    "ignores": (
        "unset AERON_CLIENT_LIVENESS_TIMEOUT; exec python /c_driver.py",
        *("environment", "a client liveness timeout of 10 s in cnc.dat"),
    ),
    "stubborn": ("trap '' TERM; python /c_driver.py", "stop", "it still ran 10 s after SIGTERM"),
    "accepts": ("exec python /c_driver.py", "not-supported", "it still ran after 3 s"),
}
"""What starts each bad image, the step that it breaks, and what is found."""
REFUSES = "echo no multicast; exit 127"
TRUNCATES = f"""
python /c_driver.py & until ls $AERON_DIR/publications/*.logbuffer; do sleep 0.02; done
truncate -s 4096 {CNC}; exec sleep 600
"""
STARTS = {name: each[0] for name, each in IMAGES.items()}
STARTS |= {"refuses": REFUSES, "truncates": TRUNCATES}
QUICK = ("accepts",)


@pytest.fixture(scope="module")
def good_image(image: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("image")
    shutil.copytree(Path(pyaeron.__file__).parent, folder / "pyaeron")
    shutil.copy(REPOSITORY / "harness" / "bench" / "c_driver.py", folder)
    return build(folder, "good", DOCKERFILE)


def build(folder: Path, tag: str, text: str) -> str:
    (folder / "Dockerfile").write_text(text)
    command = ["docker", "build", "--quiet", "--tag", f"{NAME}:{tag}", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return f"{NAME}:{tag}"


def bad(good_image: str, folder: Path, name: str) -> str:
    entry = json.dumps(["sh", "-c", STARTS[name]])
    return build(folder, name, f"FROM {good_image}\nENTRYPOINT {entry}\n")


def checked(image: str, *options: str) -> tuple[int, dict]:
    argv = ["peer", "check", image, "--json", *options]
    done = CliRunner().invoke(windtunnel, argv, standalone_mode=False, catch_exceptions=False)
    assert leftovers() == []
    return done.return_value, json.loads(done.stdout)


def run(folder: Path, name: str, more: str = "") -> tuple[str, dict, RunDir]:
    """Run a scenario whose publisher's driver is an image; return outcome and verdict."""
    file = folder / "small-loss.yaml"
    text = SCENARIO.replace("[netns]", "[netns, compose]").replace("2MiB", "256KiB")
    file.write_text(text + more)
    out = folder / "runs"
    tested = peers.pair(f"image:{name}", "ours", "compose", out / peers.STORE)
    result = run_suite([file], out=out, tested=tested, fidelity="compose")
    assert leftovers() == []
    run_dir = RunDir(result.runs[0].run_dir)
    verdict = read_verdict(run_dir.verdict)
    assert verdict is not None
    return result.runs[0].outcome, verdict, run_dir


def test_a_valid_image_passes_all_steps(good_image: str) -> None:
    code, document = checked(good_image)
    found = [(each["step"], each["outcome"], each["found"]) for each in document["steps"]]
    assert [each[1] for each in found] == ["kept"] * 7, found
    assert (code, document["kept"], document["image"]) == (0, True, good_image)


def test_a_missing_image_is_reported(image: str) -> None:
    code, document = checked("windtunnel-test/no-such-image:1")
    assert code == 1
    assert document["steps"][0]["outcome"] == "broken"
    text = "there is no image 'windtunnel-test/no-such-image:1' on this machine: build it, or use"
    assert document["steps"][0]["found"].startswith(text)


@pytest.mark.parametrize(
    "name",
    [*QUICK, *(pytest.param(each, marks=pytest.mark.full) for each in IMAGES if each not in QUICK)],
)
def test_the_first_failed_step_of_a_bad_image_is_reported(
    good_image: str, tmp_path: Path, name: str
) -> None:
    _, step, text = IMAGES[name]
    within = "3" if step in ("cnc", "not-supported") else "30"
    code, document = checked(bad(good_image, tmp_path, name), "--within", within)
    assert code == 1
    (broken,) = [each for each in document["steps"] if each["outcome"] == "broken"]
    assert broken["step"] == step, broken
    assert text in broken["found"]


def test_an_image_is_the_publishers_driver(good_image: str, tmp_path: Path) -> None:
    outcome, verdict, folder = run(tmp_path, good_image)
    assert outcome == assert_sound(folder.path).outcome, verdict["reason"]
    manifest = Manifest.read(folder.manifest)
    assert manifest is not None
    tested = manifest.subjects["a"]
    assert (tested.peer, tested.driver) == (f"image:{good_image}", "aeron-c")
    assert tested.version
    assert "AERON_DIR" in folder.host("a").driver_log.read_text().upper()


@pytest.mark.full
def test_a_matrix_has_an_image_among_its_peers(good_image: str, tmp_path: Path) -> None:
    file = tmp_path / "small-loss.yaml"
    file.write_text(SCENARIO.replace("[netns]", "[netns, compose]").replace("2MiB", "256KiB"))
    spec = MatrixSpec(
        [file],
        ["ours", f"image:{good_image}"],
        [f"image:{good_image}"],
        "compose",
        seeds=1,
        out=tmp_path,
    )
    cells = run_matrix(spec).document.cells
    assert [each.outcome for each in cells] == ["PASS", "PASS"], [each.reason for each in cells]


RUNS = {
    "links": ("FAIL", "a/driver has written an invalid cnc.dat: expected a regular file, found"),
    "absent": ("UNSUPPORTED", "there is no image 'windtunnel-test/absent:1' on this machine"),
    "ends": ("FAIL", "a/driver exited with code 3 before the shutdown request; its log"),
    "refuses": ("UNSUPPORTED", "a/driver ended with exit code 127; last log lines: no multicast"),
    "hostile": ("FAIL", "a/driver has written an invalid cnc.dat"),
    "floods": (
        "FAIL",
        "a/driver was terminated by signal 9 (SIGKILL) before the shutdown request; its log",
    ),
    "truncates": ("FAIL", "a/driver has written an invalid cnc.dat: "),
    "silent": ("INCONCLUSIVE", "a/driver is not ready after 5 s"),
    "stubborn": ("FAIL", "a/driver did not end within 60 s of the shutdown request"),
}


@pytest.mark.parametrize(
    "name",
    ["links", *(pytest.param(each, marks=pytest.mark.full) for each in RUNS if each != "links")],
)
def test_a_run_with_a_bad_image_has_a_verdict_with_a_reason(
    good_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    outcome, text = RUNS[name]
    monkeypatch.setattr(phases, "READY_TIMEOUT_S", 5.0 if name == "silent" else 300.0)
    image = "windtunnel-test/absent:1" if name == "absent" else bad(good_image, tmp_path, name)
    found, verdict, _ = run(tmp_path, image)
    assert text in verdict["reason"]
    if "(at fault: the machine)" in verdict["reason"]:
        return  # An overloaded machine excuses delays.
    assert found == outcome, verdict["reason"]


@pytest.mark.full
def test_a_lab_has_an_image_as_a_driver(good_image: str, tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text(READER)
    (tmp_path / "publisher.py").write_text(PUBLISHER)
    env = {"CHANNEL": CHANNEL}
    with open_lab(
        fidelity="compose",
        driver={"b": f"image:{good_image}"},
        loss="2%",
        delay="2ms",
        observe=[STREAM],
        out=tmp_path / "runs",
        folder=tmp_path,
    ) as lab:
        reader = lab.start("b", ["python", "reader.py"], env=env, ready="reader ready")
        publisher = lab.start("a", ["python", "publisher.py"], env=env)
        lab.wait_for_position("b", stream=1001, at_least=20_000)
        with lab.link("a-b").partitioned():
            time.sleep(1)
        lab.driver("b").pause()
        time.sleep(0.5)
        lab.driver("b").resume()
        publisher.exited(within=120)
        reader.exited(within=120)
    lab.verdict.assert_passed()
    found = {each["name"]: each["outcome"] for each in lab.verdict.checks}
    assert found["reported_once_in_order"] == "PASS"
    assert found["observed_data_arrived"] == "PASS"
    manifest = Manifest.read(RunDir(lab.run_dir).manifest)
    assert manifest is not None
    peers_used = {host: each.peer for host, each in manifest.subjects.items()}
    assert peers_used == {"a": "ours", "b": f"image:{good_image}"}
    assert leftovers() == []


@pytest.mark.full
def test_a_driver_in_an_image_is_killed_and_restarted_in_a_lab(
    good_image: str, tmp_path: Path
) -> None:
    (tmp_path / "reader.py").write_text(READER)
    with open_lab(
        fidelity="compose", driver=f"image:{good_image}", out=tmp_path / "runs", folder=tmp_path
    ) as lab:
        lab.driver("b").kill()
        lab.driver("b").restart()
        env = {"CHANNEL": CHANNEL}
        reader = lab.start("b", ["python", "reader.py"], env=env, ready="reader ready")
        assert {each.label.split(":")[0] for each in lab.counters("b")} >= {"rcv-channel"}
        reader.stop()
    lab.verdict.assert_passed()
    assert leftovers() == []
