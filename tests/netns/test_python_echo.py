"""The example in Python passes, and injected bugs of its programs are reported."""

import shutil
from pathlib import Path

import pytest

from tests.stand_ins.planted_bugs import PlantedBug, assert_named, planted, run_example
from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.suite.runner import run_suite

pytestmark = [pytest.mark.netns, pytest.mark.peer, pytest.mark.timeout(300)]
pytest.importorskip("pyaeron")
ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "python-echo"

BUGS = {
    "changes-a-response": PlantedBug(
        "partition",
        {"send(responses, request)": "send(responses, request.replace(b'x', b'y'))"},
        "responses",
        "reports another checksum than was sent",
    ),
    "drops-a-message-on-reconnect": PlantedBug(
        "killed",
        {"executed = number_of(last) + 1 if": "executed = number_of(last) + 2 if"},
        "requests",
        "has skipped it: it reports a later one",
    ),
    "delivers-twice-after-a-restart": PlantedBug(
        "killed",
        {"    if last:\n        send(responses, last)": "    if last:\n        execute(last)"},
        "requests",
        "again instead",
    ),
    "never-retries-back-pressure": PlantedBug(
        "partition",
        {
            "if is_due and requests.offer(request(following)):": "if is_due:\n"
            "            requests.offer(request(following))",
            "REPEAT_S = 1.0": "REPEAT_S = 1000.0",
        },
        "requests",
        "not on the wire, after position",
    ),
    "leaks-a-subscription": PlantedBug(
        "partition",
        {
            "    while running:\n": "    leaked = []\n    while running:\n"
            "        if executed > 20 and not leaked:\n            leaked.append(requests)\n"
            "            requests = client.add_subscription(os.environ['REQUESTS'], REQUESTS)\n"
        },
        "requests",
        "not on the wire, after position",
    ),
}


@pytest.mark.parametrize(
    ("selected", "count"), [("partition", 1), pytest.param("", 3, marks=pytest.mark.full)]
)
def test_the_example_passes_its_own_tests(tmp_path: Path, selected: str, count: int) -> None:
    done = run_example(EXAMPLE, tmp_path, "-k", selected)
    assert done.returncode == 0, done.stdout
    assert f"{count} passed" in done.stdout


@pytest.mark.full
@pytest.mark.parametrize("name", BUGS)
def test_an_injected_bug_fails_and_is_reported(name: str, tmp_path: Path) -> None:
    bug = BUGS[name]
    folder = planted(EXAMPLE, bug, tmp_path)
    assert_named(run_example(folder, tmp_path / "runs", "-k", bug.test), tmp_path / "runs", bug)


@pytest.mark.full
def test_streams_are_found_without_their_names(tmp_path: Path) -> None:
    copy = tmp_path / "echo"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("runs", "__pycache__"))
    for file in copy.glob("*.py"):
        text = file.read_text()
        for name, stream in (("requests", 1001), ("responses", 1002)):
            for kind in ("GOT", "SENT"):
                text = text.replace(f"WT {kind} {name}", f"WT {kind} stream-{stream}")
        file.write_text(text)
    scenario = copy / "python-echo.yaml"
    text = scenario.read_text()
    start, end = text.index("observe:"), text.index("events:")
    scenario.write_text(f"{text[:start]}observe: all\n{text[end:]}")
    made = run_suite([scenario], out=tmp_path / "runs", allow_commands=True)
    verdict = read_verdict(RunDir(made.runs[0].run_dir).verdict)
    assert verdict is not None
    assert verdict["outcome"] == "PASS", verdict["reason"]
    reported = [each for each in verdict["checks"] if each["name"] == "reported_once_in_order"]
    assert [each["about"] for each in reported] == ["stream-1001", "stream-1002"]
