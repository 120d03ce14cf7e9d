"""A short but complete archive benchmark: its counts are checked, not its speed."""

import pytest

from tests.peer.ports import free_port
from tests.peer.streams import until
from windtunnel.harness.bench import archive
from windtunnel.harness.bench.archive_host import OUR_ARCHIVE, ArchiveHost
from windtunnel.harness.bench.plan import BenchSettings

COUNTS = {"archive-1344": 3_048, "archive-64": 43_690}
"""Of frames of 1376 and of 96 bytes in 4 MiB, which are 64 terms and many more."""
SETTINGS = BenchSettings(
    rounds=1, seconds=0.0, warm_up_s=0.0, cases=tuple(COUNTS), drivers=("ours",),
    term_length="64k", threading_mode="SHARED", recording_bytes=4 << 20,
)  # fmt: skip


@pytest.mark.full
def test_all_recorded_messages_are_replayed(monkeypatch, tmp_path):
    counted = []

    def values_of(turns, message_length):
        counted.extend((message_length, turn.message_count) for turn in turns)
        return {"messages": 1.0}

    # Other tests may compile kernels meanwhile, which does not matter: no time is checked.
    monkeypatch.setattr(archive, "compiled_between", lambda *_: False)
    monkeypatch.setattr(archive, "values_of", values_of)
    folder = tmp_path / "round"
    control_channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    with ArchiveHost(OUR_ARCHIVE, SETTINGS, folder, control_channel) as host:
        readings = [
            archive.measure_archive(case, host, SETTINGS, folder / case.name, 0)
            for case in SETTINGS.archive_cases()
        ]
        assert (folder / "archive" / "archive.catalog").exists()
        # The archive deletes the files of a purged recording after its response.
        until(lambda: not list((folder / "archive").glob("*.rec")), "the deletion of all segments")
    assert [(each.case, each.void) for each in readings] == [(name, "") for name in COUNTS]
    # A recording and its replay of each case.
    assert counted == [(1344, 3_048)] * 2 + [(64, 43_690)] * 2
    assert not (folder / "archive").exists()
    assert not (folder / "aeron").exists()
