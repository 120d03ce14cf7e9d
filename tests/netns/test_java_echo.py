"""The example in Java passes, planted bugs of its programs are named, and without Aeron's jar it is
left out by name.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.archive.archives import why_no_java
from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir

pytestmark = [pytest.mark.netns, pytest.mark.timeout(300)]
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "java-echo"
WHY_NOT = why_no_java() or ("" if shutil.which("javac") else "there is no javac on the PATH")
needs_java = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it runs")
LIMIT_S = 290

BUGS = {
    "changes-a-response": (
        "partition",
        {
            "send(request);\n        executed =": "final byte[] changed = request.clone();\n"
            "        changed[0] = 'R';\n        send(changed);\n        executed ="
        },
        "responses",
        "reports another checksum than was sent",
    ),
    "drops-a-message-on-reconnect": (
        "killed",
        {"numberOf(last) + 1 : 0": "numberOf(last) + 2 : 0"},
        "requests",
        "has skipped it: it reports a later one",
    ),
    "delivers-twice-after-a-restart": (
        "killed",
        {"            send(last);": "            execute(numberOf(last), last);"},
        "requests",
        "again instead",
    ),
    "never-retries-back-pressure": (
        "partition",
        {
            "if (isDue && requests.offer(new UnsafeBuffer(request(following))) > 0)": "if (isDue"
            " && requests.offer(new UnsafeBuffer(request(following))) != 0)",
            "REPEAT_NS = 1_000_000_000L": "REPEAT_NS = 1_000_000_000_000L",
        },
        "requests",
        "not on the wire, after position",
    ),
    "leaks-a-subscription": (
        "partition",
        {
            "    private int executed;": "    private int executed;\n"
            "    private static Aeron theAeron;\n    private Subscription leaked;",
            "responses = aeron.addPublication(": "responses = (theAeron = aeron).addPublication(",
            "run(final Subscription requests": "run(Subscription requests",
            "if (requests.poll(take, FRAGMENTS_MAX) == 0)": "if (executed > 20 && leaked == null)\n"
            "            {\n                leaked = requests;\n                requests ="
            ' theAeron.addSubscription(System.getenv("REQUESTS"), REQUESTS);\n            }\n'
            "            if (requests.poll(take, FRAGMENTS_MAX) == 0)",
        },
        "requests",
        "does not report it",
    ),
}
"""For each bug: the test of the example that finds it, what is replaced in the programs, and what
the verdict says about which stream.
"""


def run_example(folder: Path, out: Path, *arguments: str, jar: str | None = None):
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]
    command += ["-c", "/dev/null", "--windtunnel-out", str(out), *arguments, str(folder)]
    env = dict(os.environ) if jar is None else {**os.environ, "AERON_ALL_JAR": jar}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=env
    )


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(
    ("jar", "why"),
    [
        ("", "AERON_ALL_JAR is not set: expected the path of Aeron's aeron-all jar"),
        ("/no.jar", "AERON_ALL_JAR is /no.jar: expected the path of a jar, found no such file"),
    ],
)
def test_without_the_jar_it_is_left_out_by_name(tmp_path: Path, jar: str, why: str) -> None:
    done = run_example(EXAMPLE, tmp_path, jar=jar)
    assert "1 skipped" in done.stdout
    assert why in " ".join(done.stdout.split())


@needs_java
def test_the_example_passes_its_own_tests(tmp_path: Path) -> None:
    done = run_example(EXAMPLE, tmp_path)
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


def planted(name: str, folder: Path) -> Path:
    """Return a copy of the example whose programs have a bug."""
    copy = folder / name
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("runs", "__pycache__"))
    for old, new in BUGS[name][1].items():
        (file,) = [each for each in copy.glob("*.java") if old in each.read_text()]
        file.write_text(file.read_text().replace(old, new, 1))
    return copy


@needs_java
@pytest.mark.full
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_fails_and_is_named(name: str, tmp_path: Path) -> None:
    test, _, stream, text = BUGS[name]
    done = run_example(planted(name, tmp_path), tmp_path / "runs", "-k", test)
    assert done.returncode == 1, done.stdout
    (file,) = (tmp_path / "runs").glob("*/*/verdict.json")
    verdict = read_verdict(RunDir(file.parent).verdict)
    assert verdict is not None
    found = next(
        each
        for each in verdict["checks"]
        if each["name"] == "reported_once_in_order" and each["outcome"] != "PASS"
    )
    assert found["about"] == stream
    assert text in found["text"]
    if "misses" in found["text"] and found["outcome"] == "INCONCLUSIVE":
        return  # An overloaded machine excuses what may only be late.
    assert verdict["outcome"] == "FAIL", verdict["reason"]
    assert verdict["at_fault"] == "application"
