"""Agreement of a replay: repeated, missing and additional decisions."""

import numpy as np
import pytest

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.middlebox.decision import DECISION, DROP, HOLD, NO_POSITION
from windtunnel.harness.artifact.run.agreement import LISTED_MAX, Agreement, agreement


def made(count, **fields):
    rows = np.zeros(count, dtype=DECISION)
    rows["action"], rows["frame_type"], rows["stream_id"] = DROP, 1, 1001
    rows["session"] = rows["attempt"] = 1
    rows["position"] = np.arange(count) * 64
    for name, value in fields.items():
        rows[name] = value
    return rows


def test_decisions_agree_whatever_their_times_rules_and_session_ids():
    found = agreement("first", made(3), made(3, time_ns=7, rule=1, session_id=9)[::-1])
    assert (found.ordered, found.repeated, found.added, found.is_whole) == (3, 3, 0, True)
    assert found.text == "3 of 3 decisions repeated"


@pytest.mark.parametrize(
    "field", ["link", "frame_type", "stream_id", "session", "position", "attempt", "action"]
)
def test_decisions_differ_if_any_part_of_a_frames_name_differs(field):
    other = made(3)
    other[field][1] += 1
    found = agreement("first", made(3), other)
    assert (found.repeated, found.added, found.is_whole) == (2, 1, False)
    assert found.text == (
        "2 of 3 decisions repeated; 1 frame never appeared, "
        "the first is DATA of stream 1001 on a->b at position 64 in attempt 1"
    )


def test_frames_without_a_position_are_identified_by_their_order():
    ordered = made(1, position=NO_POSITION, order=4, frame_type=2, link=1, attempt=0, session=0)
    found = agreement("first", ordered, made(0))
    assert found.first == "NAK of stream 1001 on b->a, number 4 of its kind"
    assert found.never_came == [
        {"action": "drop", "link": "b->a", "frame_type": "NAK", "stream_id": 1001, "order": 4}
    ]


def test_equal_decisions_are_counted_one_by_one():
    twice = np.concatenate([made(1), made(1)])
    assert agreement("first", twice, made(1)).repeated == 1
    assert agreement("first", made(1), twice).added == 1


def test_many_missing_frames_are_counted_and_some_are_reported():
    found = agreement("first", made(LISTED_MAX + 5), made(0, action=HOLD))
    assert found.ordered - found.repeated == LISTED_MAX + 5
    assert len(found.never_came) == LISTED_MAX


def test_is_read_back_as_written(tmp_path):
    path = tmp_path / "replay.json"
    assert Agreement.read(path) is None
    found = agreement("first", made(3), made(2))
    found.write(path)
    assert Agreement.read(path) == found
    path.write_text('{"schema": "windtunnel-replay/1", "more": 1}')
    with pytest.raises(DocumentError):
        Agreement.read(path)


def test_links_have_the_names_that_the_case_gives_them():
    names = ("pub->sub1", "sub1->pub", "pub->sub2", "sub2->pub")
    ordered = np.concatenate([made(1, link=link) for link in (0, 3, 4)])
    found = agreement("first", ordered, made(0), names)
    assert found.first == "DATA of stream 1001 on pub->sub1 at position 0 in attempt 1"
    assert [each["link"] for each in found.never_came] == ["pub->sub1", "sub2->pub", "4"]
