"""The page of a capture shows the content of the tables, escapes it, and needs no other file."""

import re

from tests.golden.reader import GOLDEN
from tests.stand_ins import synthetic_capture as made
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.output.page import capture_page, write_capture_page
from windtunnel.reports.analysis.output.page_series import streams_document

LOSSY = GOLDEN / "loss-reliable" / "capture.pcap.xz"


def test_shows_the_summary_and_the_rows():
    page = capture_page(analyze([f"x={LOSSY}"]))
    assert "the receiver requested 74,848 bytes in 57 gaps, which had been captured here" in page
    assert page.count('<tr data-stream="x|77|1001|127.0.0.1 24326"') == 1 + 1 + 50


def test_loads_nothing_from_the_network():
    page = capture_page(analyze([f"x={LOSSY}"]))
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)
    assert "<script src" not in page


def test_a_name_cannot_break_the_page():
    page = capture_page(analyze([f"<b>\"&'={LOSSY}"]))
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


def test_charts_get_the_stream_that_lost_most_first_and_times_from_the_start():
    result = analyze([f"x={LOSSY}", f"y={GOLDEN / 'clean' / 'capture.pcap.xz'}"])
    document = streams_document(result)
    first, second = document["streams"]
    assert "session 77" in first["label"]
    assert len(first["gaps"]["t"]) == 57
    assert len(second["gaps"]["t"]) == 2
    assert min(first["t"][0], second["t"][0]) == 0
    assert 0 < document["active_ms"][1] <= 1.02 * document["span_ms"][1]


def test_an_empty_capture_has_a_page_without_charts(tmp_path):
    path = tmp_path / "empty.pcap"
    path.write_bytes(made.pcap([]))
    page = tmp_path / "deep" / "page.html"
    write_capture_page(analyze([str(path)]), page)
    text = page.read_text()
    assert "no Aeron frames in 0 packets" in text
    assert 'id="series"' not in text
    assert [each.name for each in page.parent.iterdir()] == ["page.html"]
