"""Cases, channels, and the settings of each driver."""

from pathlib import Path

import pytest

from windtunnel.driver.media_driver.settings.loss_interceptors import (
    RandomLoss,
    parse_random_loss,
)
from windtunnel.driver.wire import frame_type
from windtunnel.harness.bench.plan import (
    CASE_NAMES,
    CASES,
    GROUPS,
    LOSS,
    BenchSettings,
    by_environment,
    channel,
    channels,
    length_of,
    stream_id,
)
from windtunnel.harness.bench.subject import (
    OURS,
    C,
    environment,
    peer_of,
    plain_environment,
    subjects,
)
from windtunnel.harness.orchestrate.subjects.peers import PeerError

AMBIENT = {"PATH": "/bin", "AERON_MTU_LENGTH": "9k", "AERON_DIR": "/elsewhere"}
SETTINGS = BenchSettings(
    threading_mode="SHARED", both_set={"AERON_A": "1", "AERON_B": "2"}, ours_set={"AERON_B": "3"}
)


BUFFERS = "rcv-wnd=4m|so-rcvbuf=4m|so-sndbuf=4m"
PORTS = (24_000, 24_001, 24_002, 24_003)
BY_NAME = {case.name: case for case in CASES}


def test_udp_channels_set_the_window_and_all_buffers():
    made = channels(
        BY_NAME["udp-32"], BenchSettings(window="4m", term_length="8m", mtu="8k"), PORTS
    )
    there = f"aeron:udp?endpoint=127.0.0.1:24000|term-length=8m|mtu=8k|{BUFFERS}"
    assert made == (there, (there,), there.replace("24000", "24001"))


def test_ipc_channels_have_no_window():
    assert channel(BY_NAME["ipc-32"], BenchSettings(), 24_000) == "aeron:ipc?term-length=16m"


def test_messages_that_must_fit_in_a_datagram_have_an_mtu_of_their_own():
    made = channel(BY_NAME["udp-8192"], BenchSettings(window="4m", mtu="1408"), 24_000)
    assert made == f"aeron:udp?endpoint=127.0.0.1:24000|term-length=16m|mtu=8224|{BUFFERS}"


def test_a_stream_to_several_destinations_begins_with_all_of_them():
    made = channels(BY_NAME["udp-1344-mdc"], BenchSettings(window="4m"), PORTS)
    control = f"control=127.0.0.1:24000|term-length=16m|{BUFFERS}"
    assert made.sources == f"aeron:udp?{control}|control-mode=dynamic|fc=min,g:/3"
    assert made.sinks == tuple(
        f"aeron:udp?endpoint=127.0.0.1:{port}|{control}" for port in PORTS[1:]
    )


def test_all_readers_of_a_group_have_its_channel():
    made = channels(BY_NAME["udp-1344-multicast"], BenchSettings(window="4m"), PORTS)
    assert made.sinks == (made.sources,)
    assert made.sources.startswith("aeron:udp?endpoint=224.20.30.39:24000|interface=127.0.0.1|")


def test_streams_share_the_window_as_they_share_a_socket():
    made = channels(BY_NAME["udp-1344-streams"], BenchSettings(window="2m"), PORTS)
    assert "|rcv-wnd=209715|so-rcvbuf=2m|so-sndbuf=2m" in made.sources


@pytest.mark.parametrize("window", ["", "0", "2x", "-1", "9g"])
def test_a_window_that_is_not_a_length_is_rejected(window):
    with pytest.raises(ValueError, match="expected"):
        length_of(window)


def test_every_case_has_stream_ids_of_its_own():
    used = [stream_id(case) + step for case in CASES for step in range(max(case.streams, 2))]
    assert len(set(used)) == len(used)


def test_cases_with_another_environment_need_another_driver():
    plain, lossy = by_environment(CASES)
    assert plain[0] == ()
    assert (lossy[0], lossy[1]) == (tuple(LOSS.items()), [BY_NAME["udp-1344-loss"]])


def test_a_driver_loses_one_percent_of_the_data_frames_that_it_receives():
    text = LOSS["AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS"]
    assert parse_random_loss("losses", text) == RandomLoss(0.01, 7, 1 << frame_type.DATA)


def test_chosen_cases_keep_their_order():
    chosen = BenchSettings(cases=("rtt-ipc", "startup")).chosen()
    assert [case.name for case in chosen] == ["startup", "rtt-ipc"]
    of_archives = [case.name for case in BenchSettings().archive_cases()]
    assert of_archives == ["archive-1344", "archive-64"] == list(GROUPS["archive"])
    of_drivers = [case.name for case in BenchSettings().chosen()]
    assert of_drivers == [name for name in CASE_NAMES if name not in ("swarm", *of_archives)]
    assert BenchSettings(cases=("startup",)).archive_cases() == []


@pytest.mark.parametrize(("subject", "expected"), [(OURS, "3"), (C, "2")], ids=["ours", "C"])
def test_settings_reach_the_driver_and_ambient_ones_do_not(subject, expected):
    made = environment(subject, SETTINGS, Path("/shm/aeron"), AMBIENT)
    assert made == {
        "PATH": "/bin",
        "AERON_DIR": "/shm/aeron",
        "AERON_THREADING_MODE": "SHARED",
        "AERON_A": "1",
        "AERON_B": expected,
    }


def test_the_directory_cannot_be_set():
    settings = BenchSettings(both_set={"AERON_DIR": "/elsewhere"})
    assert environment(OURS, settings, Path("/shm/aeron"), {})["AERON_DIR"] == "/shm/aeron"


def test_loads_get_no_settings_of_aeron():
    assert plain_environment(AMBIENT) == {"PATH": "/bin"}


def test_a_program_replaces_the_real_driver(tmp_path):
    program = tmp_path / "aeronmd"
    program.touch(mode=0o755)
    settings = BenchSettings(peer=f"aeronmd:{program}")
    ours, peer = subjects(settings)
    assert (ours, peer.name, peer.title) == (OURS, "c", f"aeronmd:{program}")
    assert peer.command == (str(program),)
    assert environment(peer, settings, Path("/shm/aeron"), {})["AERON_DIR"] == "/shm/aeron"
    assert subjects(BenchSettings()) == [OURS, C]
    assert subjects(BenchSettings(drivers=("c", "java"))) == [C]
    assert subjects(BenchSettings(cases=("archive-64",))) == []


@pytest.mark.parametrize("peer", ["java", "ours", "image:aeron", "aeronmd:", "aeronmd:/nowhere"])
def test_a_peer_that_is_not_a_program_is_rejected(peer):
    with pytest.raises(PeerError, match="expected"):
        peer_of(BenchSettings(peer=peer))
