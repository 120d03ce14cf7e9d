"""Trials: derived from numbers, packed into findings, and unpacked from untrusted ones."""

import zlib

import pytest

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.fuzz.finding import Input
from windtunnel.harness.fuzz.tools.damage import ABSENT, FILE, LINK, Damaged
from windtunnel.harness.fuzz.tools.programs import BY_NAME, PROGRAMS
from windtunnel.harness.fuzz.tools.trial import (
    BLOCK,
    BaseFiles,
    Trial,
    make_trial,
    packed,
    unpacked,
    write_sparse,
)

NAMES = [
    "run/run.json", "run/case.json", "run/decisions.bin", "run/captures/a.pcap", "suite/suite.json",
    "captures/a.pcap", "captures/a.pcapng", "captures/a.pcap.gz", "scenario/scenario.yaml",
    "aeron/cnc.dat", "aeron/loss-report.dat", "aeron/publications/4.logbuffer",
    "archive/archive.catalog", "archive/0-0.rec",
]  # fmt: skip


@pytest.fixture
def base(tmp_path):
    for name in NAMES:
        path = tmp_path / "base" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode() * 9)
    return BaseFiles(tmp_path / "base")


def test_equal_numbers_make_equal_trials(base):
    trials = [make_trial(base, 7, 0, number) for number in range(300)]
    assert trials == [make_trial(base, 7, 0, number) for number in range(300)]
    assert trials != [make_trial(base, 8, 0, number) for number in range(300)]
    assert len({trial.program.name for trial in trials}) > 30


def test_every_program_has_files_to_damage(base):
    for program in PROGRAMS:
        assert base.read_by(program), program.name


def test_a_command_line_names_copies_of_the_files(tmp_path):
    trial = Trial(BY_NAME["from-capture"], {"captures/a.pcap": Damaged(FILE, b"")})
    words = trial.words(tmp_path / "work", tmp_path / "out")
    assert words[1] == str(tmp_path / "work" / "captures" / "a.pcap")
    assert words[-1] == str(tmp_path / "out" / "made.yaml")


def test_a_finding_contains_all_files_that_the_command_can_read(base):
    damaged = {"run/case.json": Damaged(FILE, b"{}"), "run/run.json": Damaged(LINK, b"canary")}
    found = unpacked(packed(Trial(BY_NAME["compare"], damaged), base))
    assert found.program is BY_NAME["compare"]
    assert found.files == {
        **damaged,
        "run/decisions.bin": Damaged(FILE, b"run/decisions.bin" * 9),
        "run/captures/a.pcap": Damaged(FILE, b"run/captures/a.pcap" * 9),
        "suite/suite.json": Damaged(FILE, b"suite/suite.json" * 9),
    }


def test_a_damaged_file_that_the_command_names_comes_first(base):
    damaged = {"captures/a.pcapng": Damaged(FILE, b"x")}
    found = unpacked(packed(Trial(BY_NAME["analyze"], damaged), base))
    assert next(iter(found.files)) == "captures/a.pcapng"


def test_an_absent_file_stays_absent(base):
    found = unpacked(packed(Trial(BY_NAME["judge"], {"run/run.json": Damaged(ABSENT)}), base))
    assert "run/run.json" not in found.files


COMMAND = Input("command", 0, b"judge")


def file(name, content=b"", kind="file"):
    return Input(kind, 0, name.encode() + b"\0" + zlib.compress(content))


def test_a_plain_finding_is_accepted():
    assert unpacked([COMMAND, file("run/a.json", b"x")]).files == {
        "run/a.json": Damaged(FILE, b"x")
    }


@pytest.mark.parametrize("item", [
    file("../run/a"), file("/etc/passwd"), file("run/../../a"), file("run"), file("elsewhere/a"),
    file("run/.hidden"), file("run/a\nb"), file("run/a", b"/etc/passwd", "link"),
    file("run/a", b"", "device"), Input("file", 0, b"run/a\0not compressed"), Input("file", 0, b""),
])  # fmt: skip
def test_a_file_with_another_path_or_kind_is_refused(item):
    with pytest.raises(DocumentError, match=r"inputs\[1\]: expected"):
        unpacked([COMMAND, item])


def test_content_that_is_too_long_is_refused(monkeypatch):
    monkeypatch.setattr("windtunnel.harness.fuzz.tools.trial.CONTENT_MAX", 1_000)
    assert unpacked([COMMAND, file("run/a", bytes(999))])
    with pytest.raises(DocumentError, match="at most 1000 bytes"):
        unpacked([COMMAND, file("run/a", bytes(100_000))])


@pytest.mark.parametrize("inputs", [[], [Input("command", 0, b"/bin/sh")], [file("run/a")]])
def test_an_unknown_command_is_refused(inputs):
    with pytest.raises(DocumentError, match=r"inputs\[0\]: expected the name of a command"):
        unpacked(inputs)


@pytest.mark.parametrize("length", [0, 5, BLOCK, 3 * BLOCK + 5, 100 * BLOCK])
def test_a_sparse_file_has_its_content(tmp_path, length):
    for used in ((), (0,), (length - 1,), (0, length // 2), (length // 2, length - 1)):
        content = bytearray(length)
        for at in used if length else ():
            content[at] = 1
        write_sparse(tmp_path / "file", bytes(content))
        assert (tmp_path / "file").read_bytes() == content
    assert (tmp_path / "file").stat().st_blocks * 512 <= max(4 * BLOCK, length // 2)
