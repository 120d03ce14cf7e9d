"""report.html needs no other file, shows the documents, and is written whatever is missing."""

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.unit.reports.synthetic_suite import EPOCH_NS, MS, RunParameters, make_suite
from windtunnel.harness.artifact.documents import DocumentError, read_document, write_document
from windtunnel.harness.artifact.run.manifest import Manifest, Phase, SubjectFacts
from windtunnel.harness.artifact.run.observed import (
    FilledRange,
    Interruption,
    Observations,
    ReaderObservations,
    Stall,
)
from windtunnel.harness.artifact.run.suite import ScenarioResult, Suite, SuiteRun
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.artifact.suite_dir import SuiteDir
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.reports import observed, page, tables
from windtunnel.reports.charts.chart_document import chart_document
from windtunnel.reports.charts.series_reader import read_series
from windtunnel.reports.evidence import ANALYSIS_SCHEMA, read_run, worst
from windtunnel.reports.page import write_run_report, write_suite_report

SMALL = RunParameters(frame_count=150)
PAGE_BYTES_MAX = 8_000_000
VOID = {"meta", "link", "br", "img", "input", "path"}


class Reader(HTMLParser):
    """Collects attributes and text, and checks that every element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.sections: dict[str, str] = {}
        self._section = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        self.addresses += [str(named[name]) for name in ("src", "href", "action") if name in named]
        if tag == "section":
            self._section = str(named.get("id", "suite"))
            self.sections[self._section] = ""
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._section and "script" not in self.open:
            self.sections[self._section] += f"{data} "


def read(path: Path) -> tuple[str, Reader]:
    text = path.read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return text, reader


def test_needs_no_other_file(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", SMALL, ("PASS", "FAIL", "PASS"))
    text, reader = read(write_suite_report(suite.path))
    assert [each for each in reader.addresses if not each.startswith(("#", "data:"))] == []
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|https?://", text)
    assert len(text) < PAGE_BYTES_MAX


def test_shows_verdicts_findings_ledger_and_facts(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", SMALL, ("PASS", "FAIL"))
    text, reader = read(write_suite_report(suite.path))
    assert "<title>FAIL" in text
    overview = reader.sections["suite"]
    assert re.search(r"PASS\s+loss/reliable-2pct\s+7\s+8\.4 s", overview)
    assert re.search(r"FAIL\s+reorder/reliable-swap-and-hold\s+7.*message 4711", overview)
    bad = reader.sections["run-1"]
    for part in ("delivered_once", "message 4711", "byte 3", "position 409600", "1 of 2 passed"):
        assert part in bad
    assert "windtunnel run reorder/reliable-swap-and-hold --seed 7" in bad
    assert "all datagrams accounted for" in bad
    assert "numba" in bad
    assert "process a/driver" in bad


def test_the_duration_of_a_single_run_is_that_of_its_phases(tmp_path: Path) -> None:
    """The phases of a simulated run are on two clocks, which are years apart."""
    run = make_suite(tmp_path / "suite", SMALL).runs()[0]
    manifest = Manifest.read(run.manifest)
    assert manifest is not None
    manifest.phases = [Phase("traffic", 10**18, 10**18 + 2 * 10**9), Phase("down", 7, 7 + 10**9)]
    manifest.write(run.manifest)
    assert read_run(run).duration_s == 3.0


def test_texts_are_escaped(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", SMALL)
    path = suite.runs()[0].verdict
    document = read_document(path)
    assert document is not None
    write_document(path, document | {"reason": "<script>alert('&')</script>"})
    text, _ = read(write_suite_report(suite.path))
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


def test_figures_that_no_run_of_a_suite_has_are_left_out(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", SMALL, ("PASS", "PASS"))
    runs = [(read_run(run), read_series(run), "run-0") for run in suite.runs()]
    assert ">NAKs</th>" in tables.suite_table(runs)
    without = tables.suite_table([(run, None, anchor) for run, _, anchor in runs])
    assert ">NAKs</th>" not in without
    assert ">seed</th>" in without
    assert without.count("</td>") == 2 * without.count("</th>")


def test_a_page_with_fewer_points_than_a_run_has_says_so(tmp_path: Path, monkeypatch) -> None:
    suite = make_suite(tmp_path / "suite", SMALL, ("PASS", "PASS"))
    assert "To keep the page small" not in write_suite_report(suite.path).read_text("utf-8")
    monkeypatch.setattr("windtunnel.reports.charts.chart_document.POINTS_MAX", 200)
    _, reader = read(write_suite_report(suite.path))
    section = " ".join(reader.sections["run-0"].split())
    assert "To keep the page small, a line has at most " in section
    assert f"windtunnel report {suite.runs()[0].path}" in section


def observe(run: RunDir, observations: Observations) -> None:
    document = read_document(run.verdict)
    assert document is not None
    write_document(run.verdict, document | {"observed": observations.as_document()})


def test_the_observations_of_the_applications_precede_the_checks(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", SMALL)
    (run,) = suite.runs()
    reader = ReaderObservations(
        "orders",
        "b",
        ["orders: <no> delivery for 5.21 s"],
        [Stall(EPOCH_NS + 13 * MS, EPOCH_NS + 23 * MS, {"link": MS, "repair": 9 * MS})],
        [FilledRange(65_536, 1_408, EPOCH_NS + 1_003 * MS, 1, 0)],
    )
    observe(run, Observations(EPOCH_NS + 3 * MS, False, [], ["orders: 2 NAKs"], [reader]))
    _, page_reader = read(write_suite_report(suite.path))
    section = " ".join(page_reader.sections["run-0"].split())
    text = "What the application saw · 0 s is 2023-11-14 22:13:20.003 UTC orders: <no> delivery "
    text += "for 5.21 s orders: 2 NAKs"
    assert section.index(text) < section.index("Checks")
    stall = "orders b 0.010 s 2023-11-14 22:13:20.013 UTC 10 ms repair 9 ms, link 1 ms"
    filled = "orders b 1.000 s 2023-11-14 22:13:21.003 UTC 65 536 1 408 1 0"
    assert stall in section
    assert filled in section
    observe(run, Observations(EPOCH_NS + 3 * MS, True, [], [], [reader]))
    text, _ = read(write_suite_report(suite.path))
    assert "0 s is" not in text


def test_a_page_has_a_limited_number_of_sentences(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", SMALL)
    sentences = [f"orders: {index} NAKs" for index in range(observed.SENTENCES_MAX + 3)]
    observe(suite.runs()[0], Observations(sentences=sentences))
    _, reader = read(write_suite_report(suite.path))
    assert sentences[observed.SENTENCES_MAX - 1] in reader.sections["run-0"]
    assert sentences[observed.SENTENCES_MAX] not in reader.sections["run-0"]
    assert "3 more: see verdict.json" in reader.sections["run-0"]


def test_a_chart_has_a_band_for_each_interruption(tmp_path: Path) -> None:
    run = make_suite(tmp_path / "suite", SMALL).runs()[0]
    series = read_series(run)
    cut = Interruption("cut", "outage", "a->b", EPOCH_NS + 50 * MS, EPOCH_NS + 70 * MS)
    start_ns = EPOCH_NS + 40 * MS
    document = chart_document(series, [], Observations(start_ns, interruptions=[cut]))
    (band,) = document["bands"]
    assert band == {"kind": "cut", "name": "cut outage: a->b", "from": 10.0, "to": 30.0}
    # Times in the chart are those of the sentences: they begin with the first offer.
    assert document["begin_ms"] == (series.start_ns - start_ns) / MS < 0
    without = chart_document(series, [])
    assert (without["bands"], without["begin_ms"]) == ([], 0)


def test_an_unfinished_suite_is_drawn(tmp_path: Path) -> None:
    suite = SuiteDir(tmp_path)
    row = SuiteRun("x-s1", "x", 1, "CANCELLED", "cancelled by SIGINT", 0, 0)
    Suite("id", "netns", ["windtunnel", "run"], 0, runs=[row]).write(suite.document)
    _, reader = read(write_suite_report(tmp_path))
    assert "CANCELLED" in reader.sections["run-0"]
    assert "cancelled by SIGINT" in reader.sections["run-0"]
    assert "verdict.json is missing" in reader.sections["run-0"]


def test_a_single_run_is_not_listed_in_a_table_before_its_section(tmp_path: Path) -> None:
    for count in (1, 2):
        suite = make_suite(tmp_path / f"suite-{count}", SMALL, ("PASS", "FAIL")[:count])
        _, reader = read(write_suite_report(suite.path))
        named = [f"run-{index}" for index in range(count)]
        assert list(reader.sections) == (named if count == 1 else ["suite", *named])


def test_results_of_scenarios_and_known_failures_are_shown(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", SMALL, ("FAIL", "PASS"))
    document = Suite.read(suite.document)
    assert document is not None
    document.runs[0].outcome, document.runs[0].reason = "KNOWN", "known, issue 17"
    rate = "0 of 2 runs failed, rate 0.00% to 84.19% (95%)"
    document.scenarios = [
        ScenarioResult("several/runs", "PASS", rate, 2, 0, 1, 0.0, 0.8419, None),
        ScenarioResult("a/single-one", "PASS", "0 of 1", 1, 0, 0, 0.0, 0.975, None),
    ]
    document.remarks = ["loss/x has expired"]
    document.write(suite.document)
    _, reader = read(write_suite_report(suite.path))
    section = reader.sections["suite"]
    for text in (rate, "several/runs", "KNOWN", "known, issue 17", "Note: loss/x has expired"):
        assert text in section
    assert "a/single-one" not in section


@pytest.mark.parametrize("name", ["manifest", "verdict", "ledger", "case", "repro", "decisions"])
def test_any_document_may_be_missing_or_damaged(name: str, tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", SMALL)
    path: Path = getattr(suite.runs()[0], name)
    for damage in ("damaged", "missing"):
        if damage == "damaged" and name != "decisions":
            path.write_bytes(b'{"schema": "\xff')
        elif damage == "missing":
            path.unlink()
        _, reader = read(write_suite_report(suite.path))
        if damage == "missing" and name != "decisions":
            assert f"{path.name} is missing" in reader.sections["run-0"]


def test_a_run_without_suite_json_is_drawn(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", SMALL)
    suite.document.unlink()
    _, reader = read(write_suite_report(suite.path))
    assert "PASS" in reader.sections["run-0"]


def test_a_folder_without_a_suite_or_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="neither a suite nor a run folder"):
        write_suite_report(tmp_path)


def test_a_long_suite_draws_failed_runs_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "CHARTS_MAX", 1)
    suite = make_suite(tmp_path / "suite", SMALL, ("PASS", "FAIL", "PASS"))
    text, reader = read(write_suite_report(suite.path))
    assert 'id="series-run-1"' in text
    assert 'id="series-run-0"' not in text
    assert f"windtunnel report {suite.runs()[0].path.resolve()}" in reader.sections["run-0"]


def test_a_run_can_be_drawn_in_another_folder(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", SMALL)
    moved = tmp_path / "elsewhere"
    shutil.move(suite.runs()[0].path, moved)
    text, reader = read(write_run_report(moved))
    assert 'id="series-run-0"' in text
    assert "PASS" in reader.sections["run-0"]


def test_the_outcome_of_a_suite_is_that_of_its_worst_run() -> None:
    assert worst(["PASS", "HARNESS", "FAIL"]) == "FAIL"
    assert worst(["PASS", "UNSUPPORTED"]) == "PASS"
    assert worst(["UNSUPPORTED"]) == "UNSUPPORTED"
    assert worst([]) == "INCONCLUSIVE"


def test_the_summary_of_the_capture_analysis_is_in_the_report(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", SMALL, ("PASS", "FAIL"))
    first, second = suite.runs()
    write_document(
        first.analysis,
        {"schema": ANALYSIS_SCHEMA, "is_partial": False, "summary": ["lost 29 <frames>"]},
    )
    first.analysis_page.write_text("charts")
    _, reader = read(write_suite_report(suite.path))
    assert "lost 29 <frames>" in reader.sections["run-0"]
    assert f"windtunnel analyze --report {second.path.resolve()}" in reader.sections["run-1"]
    link = f"{first.path.name}/analysis.html"
    assert [each for each in reader.addresses if each.endswith(".html")] == [link]
    assert (suite.path / link).is_file()
    _, alone = read(write_run_report(first.path))
    assert [each for each in alone.addresses if each.endswith(".html")] == ["analysis.html"]
    first.analysis_page.unlink()
    _, reader = read(write_suite_report(suite.path))
    assert not [each for each in reader.addresses if each.endswith(".html")]
    first.analysis.write_text("{")
    _, reader = read(write_suite_report(suite.path))
    assert "analysis.json" in reader.sections["run-0"]


def test_commands_have_paths_that_are_valid_in_every_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(page, "CHARTS_MAX", 0)
    suite = make_suite(Path("runs") / "my suite", SMALL)
    _, reader = read(write_suite_report(suite.path))
    run = tmp_path.resolve() / suite.runs()[0].path
    for command in ("windtunnel report", "windtunnel analyze --report"):
        assert f"{command} '{run}'" in reader.sections["run-0"]
    monkeypatch.chdir(suite.path)
    _, reader = read(write_run_report(Path(run.name)))
    assert f"windtunnel analyze --report '{run}'" in reader.sections["run-0"]


def test_the_version_of_our_driver_is_that_of_windtunnel(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", SMALL)
    (run,) = suite.runs()
    manifest = Manifest.read(run.manifest)
    assert manifest is not None
    manifest.versions["windtunnel"] = "7.8.9"
    manifest.subjects = {
        "a": SubjectFacts("publisher", "ours", "1.53.0 commit=windtunnel"),
        "b": SubjectFacts("subscriber", "aeronmd:/x", "1.53.0 commit=8ba30f3c"),
    }
    manifest.write(run.manifest)
    text, _ = read(write_suite_report(suite.path))
    assert "publisher on a: ours 1.53.0 (Windtunnel 7.8.9)" in text
    assert "subscriber on b: aeronmd:/x 1.53.0 commit=8ba30f3c" in text
    assert "commit=windtunnel" not in text
    case = Case.read(run.case)
    case.model_copy(update={"traffic": ()}).write(run.case)
    text, _ = read(write_suite_report(suite.path))
    assert "driver on a: ours 1.53.0 (Windtunnel 7.8.9)" in text
    assert "publisher on a" not in text
