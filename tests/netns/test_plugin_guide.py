"""The programs and tests of docs/pytest.md work as documented."""

import re
from pathlib import Path

import pytest

from tests.stand_ins.plugin_project import run_pytest
from windtunnel.harness.orchestrate.labs import privileges

pytestmark = [
    pytest.mark.netns,
    pytest.mark.timeout(400),
    pytest.mark.skipif(bool(privileges.missing()), reason="network namespaces need root"),
]
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "pytest.md"
FILES = ["test_feed.py", "feed.py", "reader.py", "test_plain.py"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert [name for name, _ in blocks] == FILES
    for name, text in blocks:
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.full
def test_the_tests_of_the_guide_pass(project: Path) -> None:
    session = run_pytest(project, timeout_s=380)
    assert session.counts == {"passed": 2}, session.output


@pytest.mark.full
def test_a_stream_without_repairs_fails_as_documented(project: Path) -> None:
    test = project / "test_feed.py"
    text = test.read_text().replace("${b}:24325", "${b}:24325|reliable=false")
    test.write_text(text.replace("reader.exited(within=30)", "reader.exited(within=1)"))
    session = run_pytest(project, "test_feed.py", timeout_s=380)
    assert session.counts == {"failed": 1}, session.output
    assert "LabError: b/application-reader has not ended after 1 s" in session.output
    assert re.search(r"^E +verdict of the lab: PASS: ", session.output, re.M), session.output
    assert re.search(r"^E +run folder: .*/test-the-reader-survives-a-partition-s0$",
                     session.output, re.M)  # fmt: skip
