"""Writes the analysis of a run's captures to the run folder, and adds it to the suite report.

tables --> analysis.html    the page about the captures
       --> analysis.json    the summary lines
       --> report.html      the suite's report, or the run's, rewritten with both
"""

from pathlib import Path

from windtunnel.harness.artifact.documents import write_document
from windtunnel.harness.artifact.regular_file import untrusted_folder
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.artifact.suite_dir import SuiteDir
from windtunnel.reports.analysis.output.page import write_capture_page
from windtunnel.reports.analysis.output.summary import summary_lines
from windtunnel.reports.analysis.output.tables import Tables
from windtunnel.reports.evidence import ANALYSIS_SCHEMA
from windtunnel.reports.page import write_run_report, write_suite_report


def write_run_analysis(tables: Tables, run: RunDir) -> Path:
    """Write the analysis of a run's captures to the run folder, and return the report's path.
    Raises OSError if a file cannot be written, or DocumentError if a document of the run is
    invalid.
    """
    write_capture_page(tables, run.analysis_page)
    document = {
        "schema": ANALYSIS_SCHEMA,
        "is_partial": tables.is_partial,
        "summary": summary_lines(tables),
    }
    write_document(run.analysis, document)
    suite = SuiteDir(run.path.parent)
    if not suite.document.is_file():
        return write_run_report(run.path)
    if SuiteDir(run.path).report.is_file():
        write_run_report(run.path)
    untrusted_folder(suite.path)
    return write_suite_report(suite.path)
