"""The example in Java passes, injected bugs are reported, and without Aeron's jar it is
skipped with a reason.
"""

import shutil
from pathlib import Path

import pytest

from tests.archive.archives import why_no_java
from tests.stand_ins.planted_bugs import PlantedBug, assert_named, planted, run_example

pytestmark = [pytest.mark.netns, pytest.mark.timeout(300)]
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "java-echo"
WHY_NOT = why_no_java() or ("" if shutil.which("javac") else "there is no javac on the PATH")
needs_java = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it runs")

BUGS = {
    "changes-a-response": PlantedBug(
        "partition",
        {
            "send(request);\n        executed =": "final byte[] changed = request.clone();\n"
            "        changed[0] = 'R';\n        send(changed);\n        executed ="
        },
        "responses",
        "reports another checksum than was sent",
    ),
    "drops-a-message-on-reconnect": PlantedBug(
        "killed",
        {"numberOf(last) + 1 : 0": "numberOf(last) + 2 : 0"},
        "requests",
        "has skipped it: it reports a later one",
    ),
    "delivers-twice-after-a-restart": PlantedBug(
        "killed",
        {"            send(last);": "            execute(numberOf(last), last);"},
        "requests",
        "again instead",
    ),
    "never-retries-back-pressure": PlantedBug(
        "partition",
        {
            "if (isDue && requests.offer(new UnsafeBuffer(request(following))) > 0)": "if (isDue"
            " && requests.offer(new UnsafeBuffer(request(following))) != 0)",
            "REPEAT_NS = 1_000_000_000L": "REPEAT_NS = 1_000_000_000_000L",
        },
        "requests",
        "not on the wire, after position",
    ),
    "leaks-a-subscription": PlantedBug(
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


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(
    ("jar", "why"),
    [
        ("", "AERON_ALL_JAR is not set: expected the path of Aeron's aeron-all jar"),
        ("/no.jar", "AERON_ALL_JAR is /no.jar: expected the path of a jar, found no such file"),
    ],
)
def test_without_the_jar_it_is_skipped_with_a_reason(tmp_path: Path, jar: str, why: str) -> None:
    done = run_example(EXAMPLE, tmp_path, AERON_ALL_JAR=jar)
    assert "1 skipped" in done.stdout
    assert why in " ".join(done.stdout.split())


@needs_java
def test_the_example_passes_its_own_tests(tmp_path: Path) -> None:
    done = run_example(EXAMPLE, tmp_path)
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


@needs_java
@pytest.mark.full
@pytest.mark.parametrize("name", BUGS)
def test_an_injected_bug_fails_and_is_reported(name: str, tmp_path: Path) -> None:
    bug = BUGS[name]
    folder = planted(EXAMPLE, bug, tmp_path)
    assert_named(run_example(folder, tmp_path / "runs", "-k", bug.test), tmp_path / "runs", bug)
