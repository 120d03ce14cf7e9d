"""The counters that a program requests from a live lab."""

from pathlib import PurePath
from unittest.mock import MagicMock, Mock

import pytest

from tests.unit.harness.inspect.driver_folder import put_counter, small_cnc, write
from windtunnel.harness.artifact import regular_file
from windtunnel.harness.artifact.host.counter_sample import CounterFacts
from windtunnel.harness.orchestrate.labs.containers import ComposeLab
from windtunnel.harness.orchestrate.live import live_counters
from windtunnel.harness.orchestrate.live.live_counters import Selection
from windtunnel.harness.orchestrate.live.live_scenario import OptionError

KEY = (1).to_bytes(8, "little") + (77).to_bytes(4, "little") + (1001).to_bytes(4, "little")


def counter(label: str, type_id: int) -> CounterFacts:
    return CounterFacts(1, type_id, 1, 1, 1, label, KEY.hex(), 5)


POSITION = counter("sub-pos: 1 77 1001 aeron:udp?endpoint=x:1 @0", 4)
SYSTEM = counter("Bytes sent", 0)


def test_a_counter_is_chosen_by_the_beginning_of_its_label_and_its_stream() -> None:
    assert Selection("sub-pos", None, None).has(POSITION)
    assert Selection("sub-pos", 1001, 77).has(POSITION)
    assert not Selection("sub-pos", 1002, None).has(POSITION)
    assert not Selection("sub-pos", None, 78).has(POSITION)
    assert not Selection("rcv-pos", 1001, None).has(POSITION)
    assert Selection("Bytes", None, None).has(SYSTEM)
    assert not Selection("Bytes", 1001, None).has(SYSTEM)


def test_a_request_needs_whole_numbers() -> None:
    assert Selection.of({"counter": "x", "stream": 3}) == Selection("x", 3, None)
    with pytest.raises(OptionError, match="expected whole numbers"):
        Selection.of({"counter": "x", "stream": "3"})


def test_a_driver_that_has_not_started_has_no_counters(tmp_path) -> None:
    assert live_counters.counters(Mock(spec=[]), "a", str(tmp_path)) == []
    assert live_counters.documents([]) == []
    assert live_counters.largest([], Selection("x", None, None)) is None


def test_the_directory_of_a_container_is_opened_without_following_its_links(tmp_path) -> None:
    secret = tmp_path / "machine" / "aeron"
    secret.mkdir(parents=True)
    content = small_cnc()
    put_counter(content, 0, type_id=0, label="secret")
    write(secret, content)
    root = tmp_path / "root"
    (root / "dev").mkdir(parents=True)
    lab = MagicMock(spec=ComposeLab)
    lab.outside = lambda host, path: regular_file.folder_below(root, PurePath(path))
    assert live_counters.counters(lab, "a", "/dev/shm/aeron") == []
    (root / "dev/shm").symlink_to(tmp_path / "machine")
    text = "the counters of host a cannot be read: .*shm: expected a directory, found a symbolic"
    with pytest.raises(OptionError, match=text):
        live_counters.counters(lab, "a", "/dev/shm/aeron")
