"""All marks and lines in the chart of a simulated run have times of one clock."""

import pytest

from tests.sim.test_replay_and_shrink import RULES, run, scenario
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.reports.charts.chart_document import chart_document
from windtunnel.reports.charts.series_reader import read_series

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(900)

MARGIN_NS = 10_000_000_000
"""Streams start shortly before the traffic phase, and end shortly after it."""


def test_each_kind_of_mark_lies_within_the_run(tmp_path):
    _, folder = run(scenario(tmp_path, RULES), tmp_path)
    manifest = Manifest.read(folder.manifest)
    (traffic,) = [each for each in manifest.phases if each.name == "traffic"]
    series = read_series(folder)
    assert series.notes == []
    spans = {}
    for stream in series.streams:
        for each in (*stream.lines, *stream.marks):
            name = getattr(each, "kind", None) or each.name
            spans[name] = int(each.time_ns.min()), int(each.time_ns.max())
    expected = {"dropped", "held", "duplicated", "feedback lost", "NAK", "retransmit", "snd-pos"}
    assert expected <= set(spans)
    outside = {
        name: span
        for name, span in spans.items()
        if span[0] < traffic.started_ns - MARGIN_NS or span[1] > traffic.ended_ns + MARGIN_NS
    }
    assert outside == {}
    run_ms = (traffic.ended_ns - traffic.started_ns + 2 * MARGIN_NS) / 1e6
    assert chart_document(series, [])["duration_ms"] <= run_ms
