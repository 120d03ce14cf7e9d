"""Verdict documents are read as the judge writes them."""

import pytest

from windtunnel.harness.artifact.documents import DocumentError, write_document
from windtunnel.harness.artifact.run.observed import (
    FilledRange,
    Interruption,
    Observations,
    ReaderObservations,
    Stall,
)
from windtunnel.harness.artifact.run.result_row import ResultRow
from windtunnel.harness.artifact.run.verdict import observations_of, read_results, read_verdict
from windtunnel.harness.verdict.core.finding import AtFault, failed
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import Verdict

OBSERVED = Observations(
    start_ns=7,
    is_virtual=True,
    interruptions=[Interruption("cut", "outage", "a->b", 8, 9)],
    sentences=["3 NAKs"],
    readers=[
        ReaderObservations(
            "ticks", "b", ["1 stall"], [Stall(8, 9, {"repair": 1})], [FilledRange(0, 32, 9, 1, 0)]
        )
    ],
)
ROW = ResultRow("ticks", "a", "b", delivered_messages=3, stalled_ns={"repair": 5})


def a_verdict(*rows):
    check = failed("delivered_once", "a message is missing", at_fault=AtFault.SCENARIO)
    outcome, reason = Outcome.FAIL, check.text
    return Verdict("s", 1, outcome, reason, AtFault.SCENARIO, (), (check,), rows, OBSERVED)


def test_a_failed_verdict_with_a_party_at_fault_is_read(tmp_path):
    document = a_verdict().as_document()
    write_document(tmp_path / "verdict.json", document)
    assert read_verdict(tmp_path / "verdict.json") == document


def test_results_are_read_as_they_were_written(tmp_path):
    write_document(tmp_path / "verdict.json", a_verdict(ROW).as_document())
    assert read_results(tmp_path / "verdict.json") == [ROW]


def test_a_result_with_a_value_of_another_type_is_rejected(tmp_path):
    document = a_verdict(ROW).as_document()
    document["results"][0]["delivered_messages"] = "<b>3</b>"
    write_document(tmp_path / "verdict.json", document)
    with pytest.raises(DocumentError, match=r"results\[0\].delivered_messages"):
        read_results(tmp_path / "verdict.json")


def test_observations_of_applications_are_read_as_they_were_written(tmp_path):
    document = a_verdict().as_document()
    write_document(tmp_path / "verdict.json", document)
    assert observations_of(read_verdict(tmp_path / "verdict.json")) == OBSERVED
    assert OBSERVED.all_sentences == ["1 stall", "3 NAKs"]
    del document["observed"]
    write_document(tmp_path / "verdict.json", document)
    assert observations_of(read_verdict(tmp_path / "verdict.json")) == Observations()


def test_an_observation_with_a_value_of_another_type_is_rejected(tmp_path):
    document = a_verdict().as_document()
    document["observed"]["readers"][0]["stalls"][0]["began_ns"] = "8"
    write_document(tmp_path / "verdict.json", document)
    with pytest.raises(DocumentError, match=r"observed.readers\[0\].stalls\[0\].began_ns"):
        read_verdict(tmp_path / "verdict.json")
