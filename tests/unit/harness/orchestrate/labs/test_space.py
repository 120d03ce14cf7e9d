"""Disk space and memory are checked before a run, and errors name needed and free amounts."""

from pathlib import Path

import pytest

from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import space
from windtunnel.harness.scenario.loader import load_scenario
from windtunnel.harness.scenario.schema.model import Scenario

MAIN = Path(__file__).resolve().parents[5] / "scenarios" / "loss" / "reliable-2pct.yaml"
MIB = 1 << 20


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load_scenario(MAIN)


def test_needs_three_and_a_half_times_the_traffic_and_the_logs_on_disk(scenario):
    traffic = sum(each.content.total_bytes for each in scenario.traffic)
    logs = 2 * 3 * (64 * 1024 + MIB) + 4 * 4096
    assert space.estimate(scenario).disk_bytes == traffic * 7 // 2 + logs + 256 * MIB


def test_needs_space_for_recordings_too(tmp_path, scenario):
    file = tmp_path / "recorded.yaml"
    text = MAIN.read_text().replace("loss/reliable-2pct", "recorded")
    text = text.replace("traffic:\n", "archives: [{host: b}]\ntraffic:\n")
    content = "    content: {bytes: 64MiB, message: {from: 1B, to: max}}\n"
    file.write_text(text.replace(content, f"{content}    recorded: b\n", 1))
    more = space.estimate(load_scenario(file)).disk_bytes - space.estimate(scenario).disk_bytes
    assert more == 64 * MIB * 3 // 2


def test_needs_no_disk_for_logs_that_are_too_long_to_be_kept(tmp_path):
    file = tmp_path / "long.yaml"
    text = MAIN.read_text().replace("loss/reliable-2pct", "long")
    file.write_text(text.replace("term-length=1m", "term-length=32m"))
    logs = 2 * 3 * 64 * 1024 + 2 * 4096
    need = space.estimate(load_scenario(file))
    assert need.disk_bytes == 128 * MIB * 7 // 2 + logs + 256 * MIB


def test_needs_a_cnc_file_a_host_and_a_log_buffer_a_side_in_memory(scenario):
    logs = 2 * 3 * (64 * 1024 + MIB) + 4 * 4096
    assert space.estimate(scenario).memory_bytes == 2 * 47 * MIB + logs + 16 * MIB


def test_reports_how_much_is_needed_how_much_is_free_and_where(tmp_path):
    with pytest.raises(LabError, match=rf"1048576 MiB in {tmp_path}, but only \d+ MiB are free"):
        space.require(tmp_path, 1 << 40, "the run folder")


def test_accepts_enough_space(tmp_path):
    space.require(tmp_path, 1, "the run folder")
