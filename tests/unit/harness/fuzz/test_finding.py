"""Files of findings: written, read back, and refused if they are anything else."""

import json

import pytest

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.fuzz import finding
from windtunnel.harness.fuzz.finding import Finding, Input, packed

INPUTS = [Input("datagram", 3, b"01"), Input("command", 4, b""), Input("truncate", 0, bytes(8))]


def found(**changed):
    values = {
        "against": "driver", "driver": "ours", "mode": "SHARED", "seed": 7, "epoch": 2,
        "text": "the driver exited", "inputs": packed(INPUTS),
    }  # fmt: skip
    return Finding(**(values | changed))


def test_a_finding_is_read_back_as_written(tmp_path):
    path = found().write(tmp_path / "findings")
    assert path.name == "driver-ours-s7-e2.json"
    assert finding.read(path) == found()
    assert finding.read(path).input_list() == INPUTS


def test_only_the_last_inputs_are_kept():
    many = [Input("datagram", number, b"") for number in range(finding.INPUTS_MAX + 3)]
    kept = packed(many)
    assert len(kept) == finding.INPUTS_MAX
    assert kept[0][1] == 3


@pytest.mark.parametrize("text", [
    "", "[]", "{}", "[" * 100_000, '{"schema": "other"}', "\x00",
])  # fmt: skip
def test_another_file_is_refused(tmp_path, text):
    path = tmp_path / "finding.json"
    path.write_text(text)
    with pytest.raises(DocumentError, match="expected"):
        finding.read(path)


@pytest.mark.parametrize(
    "change", [{"schema": "windtunnel-fuzz/2"}, {"against": "/bin/sh"}, {"seed": "7"}, {"more": 1}]
)
def test_a_document_with_other_values_is_refused(tmp_path, change):
    path = found().write(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DocumentError, match="expected"):
        finding.read(path)


@pytest.mark.parametrize("item", [["datagram", 1], ["datagram", "x", "00"], ["datagram", 1, "0g"]])
def test_a_malformed_input_is_refused_by_its_number(item):
    with pytest.raises(DocumentError, match=r"inputs\[1\]: expected"):
        found(inputs=[*packed(INPUTS)[:1], item]).input_list()
