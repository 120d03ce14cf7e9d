"""Labs are a fixture in a separate project folder, with pytest-xdist and without."""

import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.stand_ins.plugin_project import run_pytest
from windtunnel.harness.orchestrate.labs import privileges

pytestmark = [
    pytest.mark.netns,
    pytest.mark.timeout(400),
    pytest.mark.skipif(bool(privileges.missing()), reason="network namespaces need root"),
]
PROGRAM = """
import socket, sys
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.bind((sys.argv[1], 5000))
print("ready", flush=True)
print("got", link.recv(100).decode(), flush=True)
"""
TESTS = """
import asyncio

import pytest

SEND = (
    "import socket, sys; socket.socket(2, 2).sendto(b'hello', (sys.argv[1], 5000))"
)

async def test_with_asyncio(windtunnel):
    async with windtunnel.lab(hosts=["a", "b"], link="a-b", delay="20ms") as lab:
        reader = await lab.start("b", ["python", "program.py", "${b}"], ready="ready")
        async with lab.link("a", "b").partitioned():
            await asyncio.sleep(0.1)
        await (await lab.start("a", ["python", "-c", SEND, "${b}"])).exited(within=20)
        await reader.exited(within=20)
        assert reader.log_text() == "ready\\ngot hello\\n"
    lab.verdict.assert_passed()

def test_plain(windtunnel):
    with windtunnel.lab() as lab:
        reader = lab.start("b", ["python", "program.py", "${b}"], ready="ready")
        lab.start("a", ["python", "-c", SEND, "${b}"]).exited()
        reader.exited()
    lab.verdict.assert_passed()

def test_that_fails(windtunnel):
    with windtunnel.lab() as lab:
        lab.start("b", ["sh", "-c", "exit 5"], name="broken")
        lab.start("a", ["sleep", "0.2"]).exited()
    lab.verdict.assert_passed()

@pytest.mark.parametrize("address", ["[::1]"])
def test_whose_body_fails(windtunnel, address):
    with windtunnel.lab() as lab:
        assert lab.address("a") == address
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / "tests"
    folder.mkdir(parents=True)
    (folder / "test_feed.py").write_text(TESTS)
    (folder / "program.py").write_text(PROGRAM)
    return folder.parent


@pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n", "2"), marks=pytest.mark.full)], ids=["alone", "xdist"]
)
def test_a_lab_is_a_fixture(project: Path, workers: tuple[str, ...]) -> None:
    session = run_pytest(project, "-W", "error", "--junit-xml", "junit.xml", *workers)
    text = session.output
    assert session.counts == {"passed": 2, "failed": 2}, text
    found = re.search(r"AssertionError: FAIL: applications_ran \(broken\): .*exit code 5", text)
    assert found is not None, text
    assert "  verdict of the lab: INCONCLUSIVE: both_sides_talked: no program was started" in text
    assert len(re.findall(r"run folder: \S+test-(?:that|whose)\S*", text)) >= 2
    cases = ElementTree.parse(project / "junit.xml").getroot().iter("testcase")
    folders = set()
    for case in cases:
        found = {each.get("name"): each.get("value") for each in case.iter("property")}
        assert Path(str(found["windtunnel_report"])).is_file()
        folders.add(Path(str(found["windtunnel_run"])))
    # A lab for each test, each below the root folder of the tests.
    assert len(folders) == 4
    assert all(each.is_relative_to(project / "runs") for each in folders)
    repeat = next(each for each in folders if "plain" in each.name) / "repro.txt"
    assert repeat.read_text().startswith("python -m pytest tests/test_feed.py::test_plain\n")


UNREAD = """
def test_one(windtunnel):
    with windtunnel.lab() as lab:
        lab.start("b", ["sh", "-c", "exit 5"], name="broken")
        lab.start("a", ["sleep", "0.2"]).exited()
"""


@pytest.mark.full
def test_a_verdict_that_is_not_read_is_a_warning(project: Path) -> None:
    (project / "tests" / "test_feed.py").write_text(UNREAD)
    session = run_pytest(project)
    assert session.counts["passed"] == 1, session.output
    assert "the test did not read the verdict of its lab" in session.output
    assert "FAIL: applications_ran (broken)" in session.output


def test_a_lab_is_skipped_by_name_without_what_it_needs(project: Path) -> None:
    (project / "empty").mkdir()
    session = run_pytest(project, "-rs", variables={"PATH": str(project / "empty")})
    assert session.counts == {"skipped": 4}, session.output
    assert "a lab: netns: this machine lacks ip, nsenter" in session.output
    session = run_pytest(project, "-rs", "--windtunnel-fidelity", "sim")
    assert session.counts == {"skipped": 4}, session.output
    assert "a lab: does not support fidelity sim, but netns" in session.output


@pytest.mark.full
def test_an_ordinary_user_has_a_lab_in_a_user_namespace(project: Path) -> None:
    ordinary = ("unshare", "--user", "--map-user=1234", "--map-group=1234", "--")
    if subprocess.run([*ordinary, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this kernel allows no user namespaces")
    session = run_pytest(project, "-rs", "-k", "test_plain", prefix=ordinary)
    assert session.counts == {"passed": 1}, session.output


def test_without_any_rights_a_lab_is_skipped_with_the_reason(project: Path) -> None:
    """Root without capabilities cannot be root in a user namespace either."""
    drop = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--")
    session = run_pytest(project, "-rs", "-k", "test_plain", prefix=drop)
    assert session.counts == {"skipped": 1}, session.output
    assert "network namespaces need CAP_NET_ADMIN" in session.output
