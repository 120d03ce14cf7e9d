"""One seed gives the same run bit for bit in another process, and another seed a different one."""

import pytest

from tests.sim.simulated import SCENARIOS, run, run_twice, shortened

pytestmark = pytest.mark.timeout(400)
FILES = (
    "decisions.bin",
    "ledger.json",
    "simulation.json",
    "captures/a.pcap",
    "captures/b.pcap",
    "hosts/a/counters.bin",
    "hosts/b/counters.bin",
    "hosts/a/publisher-term-1m.bin",
    "hosts/b/subscriber-term-1m.frames.bin",
)


@pytest.mark.parametrize(
    "name",
    ["reorder/reliable-swap-and-hold", pytest.param("loss/reliable-2pct", marks=pytest.mark.full)],
)
def test_two_processes_produce_the_same_files(name, tmp_path):
    scenario = shortened(name, tmp_path, "2MiB")
    first, second = run_twice(scenario, tmp_path, (7, 7))
    assert first.datagrams > 2_000
    assert first == second
    for file in FILES:
        one, other = (tmp_path / which / file for which in ("first", "second"))
        assert one.read_bytes() == other.read_bytes(), file


@pytest.mark.parametrize(
    ("name", "host"),
    [
        pytest.param("many/multicast-one-lossy", "sub3", marks=pytest.mark.full),
        pytest.param("host/kill-driver", "b", marks=pytest.mark.full),
    ],
)
def test_runs_with_groups_and_killed_drivers_are_the_same(name, host, tmp_path):
    scenario = SCENARIOS / f"{name}.yaml"
    first, second = run_twice(scenario, tmp_path, (7, 7))
    assert first.datagrams > 2_000
    assert first == second
    for file in (
        "decisions.bin",
        "ledger.json",
        f"captures/{host}.pcap",
        f"hosts/{host}/counters.bin",
    ):
        one, other = (tmp_path / which / file for which in ("first", "second"))
        assert one.read_bytes() == other.read_bytes(), file


def test_another_seed_gives_another_run(tmp_path):
    scenario = shortened("loss/reliable-2pct", tmp_path, "256KiB")
    first, second = run_twice(scenario, tmp_path, (7, 8))
    assert first.digest != second.digest


@pytest.mark.full
def test_two_commands_in_two_folders_produce_the_same_files(tmp_path):
    folders = []
    for name in ("first", "second"):
        made = run(SCENARIOS / "exam/no-faults.yaml", tmp_path / name)
        assert made.outcome == "PASS", made
        (document,) = tmp_path.glob(f"{name}/runs/*/*/simulation.json")
        folders.append(document.parent)
    for file in ("simulation.json", "captures/a.pcap", "hosts/a/counters.json", "verdict.json"):
        one, other = (folder / file for folder in folders)
        assert one.read_bytes() == other.read_bytes(), file
