"""`windtunnel loss`: the loss report, with the recovery counters of images that have them."""

import json

import pytest

from tests.unit.harness.inspect.driver_folder import (
    put_counter,
    small_cnc,
    stream_key,
    unpack_loss_report,
    write,
)
from windtunnel.harness.cli.root import main
from windtunnel.harness.inspect.aeron_dir import read_losses

REPORT = "reliable"


@pytest.fixture
def output(capsys):
    """Return a function that returns what the command prints about a driver directory."""

    def printed(folder, *options):
        assert main(["loss", "--dir", str(folder), *options]) == 0
        return capsys.readouterr().out

    return printed


@pytest.fixture
def folder(tmp_path):
    unpack_loss_report(REPORT, tmp_path)
    entry = read_losses(tmp_path).losses[0]
    content = small_cnc()
    values = {5_304: 3, 5_305: 12_345_678, 5_306: 1_234, 5_307: 250_000_000}
    for index, (type_id, value) in enumerate(values.items()):
        key = stream_key(4, entry.session_id, entry.stream_id, entry.channel)
        put_counter(content, index, type_id=type_id, label="x", key=key, value=value)
    return write(tmp_path, content)


def test_the_recovery_of_a_stream_is_shown_next_to_its_losses(folder, output):
    row = next(line for line in output(folder).splitlines() if "12.3 ms" in line)
    for text in (" 3 ", " 12.3 ms ", " 1,234 ", " 250.0 ms ", " - "):
        assert text in row
    document = json.loads(output(folder, "--json"))
    assert document["losses"][0]["recovery"] == {
        "gaps_open": 3,
        "oldest_gap_ns": 12_345_678,
        "nak_retries": 1_234,
        "repair_ns": 250_000_000,
        "filled_early": None,
    }


def test_a_driver_without_these_counters_shows_none(tmp_path, output):
    unpack_loss_report(REPORT, tmp_path)
    write(tmp_path, small_cnc())
    document = json.loads(output(tmp_path, "--json"))
    assert all(each["recovery"] is None for each in document["losses"])
    (tmp_path / "cnc.dat").unlink()
    assert "- " in output(tmp_path)
