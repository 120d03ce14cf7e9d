"""Evidence: a truncated file is not the subject's fault."""

import json

import pytest

from tests.unit.harness.verdict.synthetic_run import TRAFFIC, SyntheticRun, make_run
from windtunnel.harness.artifact.host.counter_sample import COUNTER_SAMPLE
from windtunnel.harness.artifact.host.delivery import DELIVERY
from windtunnel.harness.artifact.host.frame_seen import FRAME_SEEN
from windtunnel.harness.artifact.middlebox.decision import DECISION
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import verdict_of


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    made = make_run(tmp_path)
    made.write()
    return made


def cut(path, byte_count: int) -> None:
    path.write_bytes(path.read_bytes()[:-byte_count])


def files(run):
    return run.folder.host("b").subscriber(TRAFFIC)


def is_damaged(found) -> bool:
    return isinstance(found, Missing) and found.damaged


def delivered(run):
    return Evidence(run.path).delivered(run.traffic)


def ends(run, *exit_codes: int | None, names=("b/subscriber-one", "b/subscriber-one#2")) -> None:
    """Set the exit codes of the subscriber and its restart."""
    path = run.folder.manifest
    document = json.loads(path.read_text())
    plain = next(each for each in document["processes"] if each["role"] == "subscriber")
    document["processes"] = [
        *(each for each in document["processes"] if each["role"] != "subscriber"),
        *(
            {**plain, "name": name, "exit_code": code}
            for name, code in zip(names, exit_codes, strict=False)
        ),
    ]
    path.write_text(json.dumps(document))


def test_a_whole_folder_is_read(run):
    evidence = Evidence(run.path)
    for found in (
        evidence.delivered(run.traffic), evidence.frames_seen(run.traffic),
        evidence.host_counters("a"), evidence.decisions,
    ):  # fmt: skip
        assert not isinstance(found, Missing)


@pytest.mark.parametrize("byte_count", [1, DELIVERY.itemsize - 1, DELIVERY.itemsize])
def test_a_truncated_index_is_damaged(run, byte_count):
    cut(files(run).index, byte_count)
    found = delivered(run)
    assert is_damaged(found)
    assert found.source == "hosts/b/subscriber-one.index.bin"


@pytest.mark.parametrize("byte_count", [1, 5000])
def test_truncated_messages_are_damaged(run, byte_count):
    cut(files(run).messages, byte_count)
    assert is_damaged(delivered(run))


def test_messages_without_an_index_are_damaged(run):
    with files(run).messages.open("ab") as file:
        file.write(b"more")
    assert is_damaged(delivered(run))


@pytest.mark.parametrize(
    ("path", "itemsize", "read"),
    [
        ("hosts/b/subscriber-one.frames.bin", FRAME_SEEN.itemsize, "frames_seen"),
        ("hosts/a/counters.bin", COUNTER_SAMPLE.itemsize, "counted"),
        ("decisions.bin", DECISION.itemsize, "decisions"),
    ],
)
def test_records_that_end_inside_one_are_damaged(run, path, itemsize, read):
    cut(run.path / path, itemsize // 2)
    evidence = Evidence(run.path)
    found = {
        "frames_seen": lambda: evidence.frames_seen(run.traffic),
        "counted": lambda: evidence.host_counters("a"),
        "decisions": lambda: evidence.decisions,
    }[read]()
    assert is_damaged(found)
    assert (found.source, "ends inside a record" in found.reason) == (path, True)


@pytest.mark.parametrize("exit_codes", [(-9,), (137,), (None,), (-11,), (-9, 0), (0, -9)], ids=str)
def test_a_killed_subscriber_may_leave_truncated_files_and_an_older_document(run, exit_codes):
    ends(run, *exit_codes)
    cut(files(run).index, DELIVERY.itemsize + 3)
    cut(files(run).frames, 3)
    found = delivered(run)
    assert not isinstance(found, Missing)
    assert len(found.deliveries) == len(run.messages) - 2
    assert not isinstance(Evidence(run.path).frames_seen(run.traffic), Missing)


@pytest.mark.parametrize("exit_codes", [(0,), (143,), (124,), (1,)], ids=str)
def test_a_subscriber_that_was_not_killed_completed_its_files(run, exit_codes):
    ends(run, *exit_codes)
    assert not isinstance(delivered(run), Missing)
    cut(files(run).index, DELIVERY.itemsize)
    assert is_damaged(delivered(run))


@pytest.mark.parametrize(
    ("path", "byte_count"),
    [
        ("hosts/b/subscriber-one.index.bin", 500),
        ("hosts/b/subscriber-one.frames.bin", 503),
        ("hosts/b/counters.bin", 2001),
    ],
)
def test_a_run_folder_that_was_copied_incompletely_is_never_the_subjects_failure(
    run, path, byte_count
):
    assert verdict_of(Evidence(run.path)).outcome is Outcome.PASS
    cut(run.path / path, byte_count)
    assert verdict_of(Evidence(run.path)).outcome is Outcome.HARNESS


def test_the_reason_does_not_depend_on_where_the_run_folder_is(run):
    run.folder.host("b").archive.mkdir()
    found = Evidence(run.path).archive("b")
    assert is_damaged(found)
    assert str(run.path) not in found.reason
    assert "archive.catalog" in found.reason
