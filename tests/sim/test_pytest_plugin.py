"""Scenarios run as tests in a separate project folder, with pytest-xdist and without."""

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.stand_ins.plugin_project import run_pytest

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(900)

SCENARIO = """
schema: windtunnel/1
name: made/{name}
about: For a test of the plugin.
seeds: {{root: 5}}
fidelity: [{fidelity}]
network:
  hosts: [a, b]
  link: {{between: [a, b]}}
traffic:
  - id: orders
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${{b}}:24325|term-length=64k"
    receive: "aeron:udp?endpoint=${{b}}:24325"
    content: {{bytes: 100KiB, message: 1316B}}
faults:
  - {{id: loss, where: {{link: a->b}}, what: {{type: DATA}}, act: {{drop: {loss}}}}}
expect: [{expect}]
budget: {{wall: 60s}}
"""
SWEEP = "sweep: {faults.loss.act.drop: [20%, 30%]}\n"
TESTS = """
import pytest

@pytest.mark.windtunnel("good.yaml", seeds=2)
def test_good(windtunnel_run):
    assert windtunnel_run.verdict.passed
    assert windtunnel_run.verdict.results[0]["lost_frames"] > 0
    assert (windtunnel_run.verdict.run_dir / "case.json").is_file()

@pytest.mark.windtunnel("good.yaml", seed=9)
async def test_without_the_fixture(tmp_path):
    raise AssertionError("the body of the test")

@pytest.mark.windtunnel("bad.yaml")
def test_bad():
    raise AssertionError("never reached")

@pytest.mark.windtunnel("netns.yaml")
def test_elsewhere():
    raise AssertionError("never reached")
"""


def scenario(name: str, loss: str, expect: str, fidelity: str = "netns, sim") -> str:
    return SCENARIO.format(name=name, loss=loss, expect=expect, fidelity=fidelity)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "test_streams.py").write_text(TESTS)
    (tmp_path / "good.yaml").write_text(scenario("good", "20%", "delivered_once"))
    # It is inconclusive, because its rule applies to too few frames.
    (tmp_path / "bad.yaml").write_text(scenario("bad", "0.001%", "delivered_once"))
    (tmp_path / "netns.yaml").write_text(
        scenario("netns", "20%", "delivered_once", "netns") + SWEEP
    )
    return tmp_path


@pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n", "2"), marks=pytest.mark.full)], ids=["alone", "xdist"]
)
def test_a_scenario_is_a_test_case_for_each_seed(project: Path, workers: tuple[str, ...]) -> None:
    arguments = ("--windtunnel-fidelity", "sim", "-v", "-rs", "--junit-xml", "junit.xml")
    session = run_pytest(project, *arguments, *workers)
    text = session.output
    assert session.counts == {"passed": 2, "failed": 2, "skipped": 2}, text
    assert "test_good[good.yaml-seed5]" in text
    assert "test_good[good.yaml-seed6]" in text
    assert "test_elsewhere[netns.yaml-30%-seed5]" in text
    assert "scenario made/netns/drop-30pct: does not support fidelity sim, but netns" in text
    # The failures name the run folder and the report, and only one reached its test.
    assert "never reached" not in text.partition("short test summary")[0].replace("raise", "")
    assert re.search(r"^E +AssertionError: the body of the test$", text, re.M), text
    assert text.count("run folder: ") == 2
    assert "report: " in text
    assert "repeat: windtunnel run " in text
    _check_properties(project)


def _check_properties(project: Path) -> None:
    cases = ElementTree.parse(project / "junit.xml").getroot().iter("testcase")
    found = {
        case.attrib["name"]: {each.attrib["name"]: each.attrib["value"] for each in properties}
        for case in cases
        if (properties := case.findall("properties/property"))
    }
    good = found["test_good[good.yaml-seed5]"]
    assert good["windtunnel_outcome"] == "PASS"
    assert (Path(good["windtunnel_run"]) / "verdict.json").is_file()
    assert Path(good["windtunnel_run"]).is_relative_to(project / "runs")
    assert Path(good["windtunnel_report"]).is_file()


@pytest.mark.full
def test_options_choose_the_seed_and_the_folder(project: Path) -> None:
    arguments = ("--windtunnel-fidelity", "sim", "--windtunnel-seed", "70", "-k", "test_good")
    session = run_pytest(project, *arguments, "--windtunnel-out", "elsewhere", "-v")
    assert session.counts["passed"] == 2, session.output
    assert "test_good[good.yaml-seed70]" in session.output
    assert not (project / "runs").exists()
    assert len(list((project / "elsewhere").rglob("verdict.json"))) == 2


WRONG = {
    '"goood.yaml"': "no scenario or file named 'goood.yaml'",
    '"good.yaml", seeds=0': "expected `seeds` from 1 to 10000, found 0",
    '"good.yaml", seed=-1': "expected `seed` from 0 to",
    '"good.yaml", sedes=3': "unknown arguments sedes",
    '"good.yaml", seed=2**63 - 2, seeds=3': "expected seeds up to 9223372036854775807, found 3",
    '"good.yaml", allow_commands="no"': "expected `allow_commands` True or False, found 'no'",
    "3": "expected one scenario's name or file, found (3,)",
    '"broken.yaml"': "broken.yaml",
}
"""Arguments of the marker, and the error message of each."""


def test_a_wrong_marker_is_an_error_of_its_file(project: Path) -> None:
    (project / "broken.yaml").write_text("schema: windtunnel/1\n")
    (project / "test_streams.py").write_text("def test_one(): pass\n")
    for number, mark in enumerate(WRONG):
        module = f"import pytest\n@pytest.mark.windtunnel({mark})\ndef test_one(): pass\n"
        (project / f"test_wrong_{number}.py").write_text(module)
    session = run_pytest(project, "--continue-on-collection-errors")
    assert session.counts == {"passed": 1, "error": len(WRONG)}, session.output
    of_files = re.split(r"_ ERROR collecting (\S+) _", session.output)
    found = dict(zip(of_files[1::2], of_files[2::2], strict=True))
    for number, text in enumerate(WRONG.values()):
        assert text in found[f"test_wrong_{number}.py"]
    assert "Traceback" not in session.output


STACKED = """
import pytest

@pytest.mark.windtunnel("good.yaml")
@pytest.mark.windtunnel("bad.yaml")
def test_both(): pass
"""
OF_CLASSES = """
import unittest

import pytest

@pytest.mark.windtunnel("bad.yaml")
class TestOfClass(unittest.TestCase):
    def test_one(self): pass

class TestOfMethod(unittest.TestCase):
    @pytest.mark.windtunnel("bad.yaml")
    def test_two(self): pass

    @pytest.mark.windtunnel("bad.yaml")
    @pytest.mark.skip
    def test_skipped(self): pass

    def test_without(self): pass

@pytest.mark.windtunnel("bad.yaml")
class TestPlain:
    @pytest.mark.windtunnel("good.yaml")
    def test_closest(self): pass
"""


def test_two_markers_of_a_test_are_an_error(project: Path) -> None:
    (project / "test_streams.py").write_text(STACKED)
    session = run_pytest(project, "--windtunnel-fidelity", "sim")
    assert session.counts == {"error": 1}, session.output
    text = "expected one scenario for test_both, found 'bad.yaml', 'good.yaml'; write a test for"
    assert text in session.output


def test_a_marked_method_of_unittest_fails_because_no_scenario_runs(project: Path) -> None:
    (project / "test_streams.py").write_text(OF_CLASSES)
    session = run_pytest(project, "--windtunnel-fidelity", "sim", "-v")
    counted = dict(session.counts)
    assert counted.pop("failed", 0) + counted.pop("error", 0) == 2, session.output
    assert counted == {"passed": 2, "skipped": 1}
    assert session.output.count("method of a class that is no unittest.TestCase, found test_") >= 2
    assert "test_closest[good.yaml-seed5] PASSED" in session.output


@pytest.mark.full
def test_without_privileges_a_test_is_skipped_by_name_or_simulated(project: Path) -> None:
    """To the plugin, missing programs for namespaces equal missing privileges."""
    path = project / "empty"
    path.mkdir()
    arguments = ("-rs", "-k", "test_elsewhere or (test_good and seed5)")
    session = run_pytest(project, *arguments, variables={"PATH": str(path)})
    assert session.counts == {"passed": 1, "skipped": 2}, session.output
    assert "scenario made/netns/drop-20pct: netns: this machine lacks ip" in session.output
    forced = run_pytest(project, *arguments, "--windtunnel-fidelity", "netns",
                        variables={"PATH": str(path)})  # fmt: skip
    assert forced.counts["failed"] == 3, forced.output
    assert "fidelity netns was requested, but this machine lacks ip" in forced.output
    shutil.rmtree(path)
