"""Two archives in containers replicate over a lossy link, and are judged."""

import pytest

from tests.netns.test_archives import SCENARIOS
from tests.soundness import assert_sound
from windtunnel.harness.artifact.suite_dir import SuiteDir
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.suite.runner import run_suite
from windtunnel.harness.verdict.checks.archive.recording import EQUAL
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import judge

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1800)]
FLAGS_AT = 5


@pytest.mark.full
@pytest.mark.skipif(bool(privileges.missing()), reason="files of containers are root's: run as it")
def test_a_replication_equals_the_stream_and_a_changed_byte_is_detected(image, tmp_path):
    file = SCENARIOS / "replicate-over-bad-link.yaml"
    result = run_suite([file], seeds=1, out=tmp_path, fidelity="compose")
    (run,) = SuiteDir(result.suite_dir).runs()
    verdict = assert_sound(run.path)
    assert sum(each.name == EQUAL for each in verdict.checks) == 2
    first = run.host("a").archive / "0-0.rec"
    content = bytearray(first.read_bytes())
    content[FLAGS_AT] ^= 1
    first.write_bytes(content)
    found = [each.outcome for each in judge(run.path).checks if each.name == EQUAL]
    assert sorted(found) == [Outcome.FAIL, Outcome.PASS]
