"""The example in Python passes, and planted bugs of its programs are named."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.suite.runner import run_suite

pytestmark = [pytest.mark.netns, pytest.mark.peer, pytest.mark.timeout(300)]
pytest.importorskip("pyaeron")
ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "python-echo"

BUGS = {
    "answers-twice": (
        "service.py",
        "    send(responses, message)\n        print",
        "    [send(responses, message) for _ in range(1 + (received == 20))]\n        print",
        "responses",
        "reports message",
    ),
    "drops-a-request": (
        "service.py",
        "        received += 1\n",
        "        received += 1\n        if received == 20:\n            return\n",
        "",
        "request 19 was not answered within",
    ),
    "changes-a-response": (
        "service.py",
        "        send(responses, message)\n",
        "        send(responses, message if received != 20 else message[:-1] + b'?')\n",
        "responses",
        "reports another checksum than was sent",
    ),
}
"""For each bug: the file, the code that is replaced, its replacement, and what the verdict says
about which stream.
"""


def test_the_example_passes_its_own_tests(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"]
    command += ["--windtunnel-out", str(tmp_path), str(EXAMPLE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=290, check=False)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def planted(name: str, folder: Path) -> Path:
    """Return a copy of the example's scenario whose programs have a bug."""
    file, old, new, _, _ = BUGS[name]
    copy = folder / name
    shutil.copytree(EXAMPLE, copy)
    text = (copy / file).read_text()
    assert text.count(old) == 1, name
    (copy / file).write_text(text.replace(old, new))
    client = copy / "client.py"
    client.write_text(client.read_text().replace("TIMEOUT_S = 20.0", "TIMEOUT_S = 5.0"))
    scenario = (copy / "python-echo.yaml").read_text()
    result = copy / f"{name}.yaml"
    result.write_text(scenario.replace("name: examples/python-echo", f"name: made/{name}"))
    return result


@pytest.mark.parametrize(
    "name",
    [
        "changes-a-response",
        *(pytest.param(each, marks=pytest.mark.full) for each in BUGS if "changes" not in each),
    ],
)
def test_a_planted_bug_fails_and_is_named(name: str, tmp_path: Path) -> None:
    *_, stream, text = BUGS[name]
    made = run_suite([planted(name, tmp_path)], out=tmp_path / "runs", allow_commands=True)
    verdict = read_verdict(RunDir(made.runs[0].run_dir).verdict)
    assert verdict is not None
    assert verdict["outcome"] == "FAIL", verdict["reason"]
    assert verdict["at_fault"] == "application"
    failures = [each for each in verdict["checks"] if each["outcome"] == "FAIL"]
    assert any(text in each["text"] for each in failures), failures
    if stream:
        found = next(each for each in failures if each["name"] == "reported_once_in_order")
        assert found["about"] == stream
        assert found["position"] >= 0
