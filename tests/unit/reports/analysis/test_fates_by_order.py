"""One capture tells every frame's fate where its packets are numbered in the order of sending."""

import pyarrow.parquet as pq
import pytest

from reports.analysis.analyze import Wanted, analyze
from tests.stand_ins import repaired_link

SEEDS = range(8)


def fates(folder, name, **captures):
    for point, content in captures.items():
        (folder / f"{point}.pcap").write_bytes(content)
    paths = [str(folder / f"{point}.pcap") for point in captures]
    analyze(paths, wanted=Wanted(fates_to=folder / name))
    rows = pq.read_table(folder / name).to_pylist()
    return [each for each in rows if each["record_at"] is not None]


def came_in_order(link):
    return sorted(link.came, key=lambda each: each.time_ns)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_one_capture_tells_all_fates(tmp_path, seed, batch):
    link = repaired_link.run(seed)
    _, far = repaired_link.captures(link, batch=batch)
    told = [each["fate"] for each in fates(tmp_path, "one", far=far)]
    expected = [each.fate for each in came_in_order(link) for _ in range(batch)]
    assert {"resent", "late", "reordered", "duplicate", "first"} <= set(expected)
    assert told == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_tell_two_captures_which_passage_is_which_arrival(tmp_path, seed):
    link = repaired_link.run(seed)
    near, far = repaired_link.captures(link)
    told = fates(tmp_path, "both", near=near, far=far)
    came = [each for each in told if each["vantage_point"] == "far"]
    expected = [(each.sent.attempt, each.is_copy) for each in came_in_order(link)]
    assert [(each["attempt"], each["fate"] == "duplicate") for each in came] == expected


def test_without_numbers_some_fates_cannot_be_told(tmp_path):
    """That the numbers are what tells: else the tests above would tell nothing."""
    links = [repaired_link.run(seed) for seed in SEEDS]
    wrong = 0
    for index, link in enumerate(links):
        _, far = repaired_link.captures(link, has_numbers=False)
        told = [each["fate"] for each in fates(tmp_path, f"one-{index}", far=far)]
        pairs = zip(told, came_in_order(link), strict=True)
        wrong += sum(fate != each.fate for fate, each in pairs)
    assert wrong > 0
