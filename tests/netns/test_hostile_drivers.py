"""A driver that truncates its cnc.dat while others use it fails, and is named."""

from pathlib import Path

import pytest

from tests.netns.test_real_aeron import SCENARIO
from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.subjects.subject import DIRECTORY, PYTHON, Pair, Subject
from windtunnel.harness.orchestrate.suite.runner import run_suite

pytestmark = [
    pytest.mark.netns,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(privileges.missing()), reason="network namespaces need root"),
]
TRUNCATE = """
until ls "$AERON_DIR"/publications/*.logbuffer; do sleep 0.02; done
truncate -s LENGTH "$AERON_DIR/cnc.dat"
exec sleep 600
"""
"""What a driver does when a publication has a log. It may also end by itself because of it."""


def truncating(length: int) -> Subject:
    text = f"'{PYTHON}' -m windtunnel.driver --dir {DIRECTORY} & export AERON_DIR={DIRECTORY}"
    return Subject("ours", ("sh", "-c", text + TRUNCATE.replace("LENGTH", str(length))))


@pytest.mark.parametrize("length", [0, pytest.param(4096, marks=pytest.mark.full)])
def test_a_truncated_cnc_file_is_the_drivers_failure(tmp_path: Path, length: int) -> None:
    file = tmp_path / "small-loss.yaml"
    file.write_text(SCENARIO)
    tested = Pair(truncating(length), truncating(length))
    result = run_suite([file], out=tmp_path / "runs", tested=tested)
    verdict = read_verdict(RunDir(result.runs[0].run_dir).verdict)
    assert verdict is not None
    assert verdict["outcome"] == "FAIL", verdict["reason"]
    assert verdict["at_fault"] == "driver"
    texts = [each["text"] for each in verdict["checks"] if each["outcome"] == "FAIL"]
    assert any("a/driver has written an invalid cnc.dat: " in each for each in texts), texts
