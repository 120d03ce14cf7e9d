"""Cases, channels, and the settings of each driver."""

from pathlib import Path

import pytest

from windtunnel.harness.bench.plan import (
    CASE_NAMES,
    CASES,
    GROUPS,
    BenchSettings,
    channel,
    stream_id,
)
from windtunnel.harness.bench.subject import OURS, C, environment, plain_environment

AMBIENT = {"PATH": "/bin", "AERON_MTU_LENGTH": "9k", "AERON_DIR": "/elsewhere"}
SETTINGS = BenchSettings(
    threading_mode="SHARED", both_set={"AERON_A": "1", "AERON_B": "2"}, ours_set={"AERON_B": "3"}
)


def test_udp_channels_carry_the_window_into_every_buffer():
    uri = channel("udp", BenchSettings(window="4m", term_length="8m", mtu="8k"), 24_000)
    assert uri == (
        "aeron:udp?endpoint=127.0.0.1:24000|term-length=8m|mtu=8k|rcv-wnd=4m|so-rcvbuf=4m"
        "|so-sndbuf=4m"
    )


def test_ipc_channels_have_no_window():
    assert channel("ipc", BenchSettings(), 24_000) == "aeron:ipc?term-length=16m"


def test_every_case_has_stream_ids_of_its_own():
    used = [stream_id(case) + step for case in CASES for step in (0, 1)]
    assert len(set(used)) == len(used)


def test_chosen_cases_keep_their_order():
    chosen = BenchSettings(cases=("rtt-ipc", "startup")).chosen()
    assert [case.name for case in chosen] == ["startup", "rtt-ipc"]
    of_archives = [case.name for case in BenchSettings().archive_cases()]
    assert of_archives == ["archive-1344", "archive-64"] == list(GROUPS["archive"])
    of_drivers = [case.name for case in BenchSettings().chosen()]
    assert of_drivers == [name for name in CASE_NAMES if name not in ("swarm", *of_archives)]
    assert BenchSettings(cases=("startup",)).archive_cases() == []


@pytest.mark.parametrize(("subject", "told"), [(OURS, "3"), (C, "2")], ids=["ours", "C"])
def test_settings_reach_the_driver_and_ambient_ones_do_not(subject, told):
    made = environment(subject, SETTINGS, Path("/shm/aeron"), AMBIENT)
    assert made == {
        "PATH": "/bin",
        "AERON_DIR": "/shm/aeron",
        "AERON_THREADING_MODE": "SHARED",
        "AERON_A": "1",
        "AERON_B": told,
    }


def test_nobody_moves_the_directory():
    settings = BenchSettings(both_set={"AERON_DIR": "/elsewhere"})
    assert environment(OURS, settings, Path("/shm/aeron"), {})["AERON_DIR"] == "/shm/aeron"


def test_loads_get_no_settings_of_aeron():
    assert plain_environment(AMBIENT) == {"PATH": "/bin"}
