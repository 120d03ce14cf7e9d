"""The report of captures is opened offline in headless Chromium, and used."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import Browser, program
from tests.golden.reader import GOLDEN
from tests.stand_ins import synthetic_capture as made
from tests.stand_ins.synthetic_capture import START_NS, packet
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.output.page import write_capture_page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(program() is None, reason="no Chromium: apt-get install chromium"),
]
CHARTS = ("positions", "gaps", "stalls", "repairs", "links")
PHONE = (390, 844)
FRAMES, LOST = 400, (20, 21, 90)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Report on a golden stream with losses, and one captured before and behind a lossy link."""
    folder = tmp_path_factory.mktemp("captures")
    sent = made.stream_packets(FRAMES, session=5)
    arrived = [
        packet(START_NS + index * 1000 + 30_000, sent_frame)
        for index, sent_frame in enumerate(_payloads())
        if index not in LOST
    ]
    (folder / "near.pcap").write_bytes(made.pcap(sent))
    (folder / "far.pcap").write_bytes(made.pcap(arrived))
    path = folder / "page.html"
    golden = GOLDEN / "loss-reliable" / "capture.pcap.xz"
    write_capture_page(analyze([f"golden={golden}", str(folder)]), path)
    return path


def _payloads() -> list[bytes]:
    return [made.data(index * 256, bytes(range(200)), session=5) for index in range(FRAMES)]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def opened(browser: Browser, report: Path) -> Iterator[Browser]:
    """Open the report; afterwards check for complaints, and for requests except the file itself."""
    browser.complaints.clear()
    browser.requests.clear()
    browser.prefer_dark(False)
    browser.resize(1280, 1000)
    browser.open(report)
    browser.wait_for("document.querySelector('.chart[data-drawn]')")
    yield browser
    assert browser.complaints == []
    assert browser.requests == [report.as_uri()]


def plot(name: str) -> str:
    return f"document.querySelector('[data-chart={name}]')"


def traces(browser: Browser, name: str, field: str) -> Any:
    return browser.evaluate(f"[...({plot(name)}.data || [])].map((each) => {field})")


def choose(browser: Browser, label: str) -> None:
    found = browser.evaluate(
        "(() => { const select = document.getElementById('stream');"
        f" const option = [...select.options].find((each) => each.text.includes({label!r}));"
        " select.value = option.value; select.dispatchEvent(new Event('change'));"
        " return option.text; })()"
    )
    assert label in found


def test_draws_losses_and_stalls_of_a_stream(opened: Browser) -> None:
    choose(opened, "session 77")
    assert {"high", "rebuilt", "consumed", "limit", "repaired"} == set(
        traces(opened, "positions", "each.name")
    )
    assert traces(opened, "gaps", "each.x.length") == [57]
    assert sum(traces(opened, "repairs", "each.y.reduce((a, b) => a + b, 0)")) == 57
    assert sum(traces(opened, "stalls", "each.x.length")) == 2
    assert opened.evaluate(f"{plot('positions')}.layout.shapes.length") == 2
    assert opened.evaluate(f"{plot('links')}.hidden")
    lines = "document.querySelectorAll('[data-chart=positions] .scatterlayer .js-line').length"
    assert opened.evaluate(lines) >= 4


def test_losses_are_shown_by_link(opened: Browser) -> None:
    choose(opened, "session 5 at near")
    assert traces(opened, "links", "each.name") == ["lost", "reordered", "copied"]
    assert traces(opened, "links", "each.x[0]") == ["near → far · 1001"] * 3
    assert traces(opened, "links", "each.y[0]")[0] == pytest.approx(100 * len(LOST) / FRAMES)
    assert opened.evaluate(f"{plot('stalls')}.hidden")


def test_a_choice_of_stream_filters_charts_and_tables(opened: Browser) -> None:
    shown = "[...document.querySelectorAll('tr[data-stream]')].filter((each) => !each.hidden)"
    choose(opened, "session 77")
    assert set(opened.evaluate(f"{shown}.map((each) => each.dataset.stream.split('|')[1])")) == {
        "77"
    }
    choose(opened, "all 3 flows")
    assert set(opened.evaluate(f"{shown}.map((each) => each.dataset.stream.split('|')[1])")) == {
        "5",
        "77",
    }
    assert len(traces(opened, "positions", "each.name")) == 3


def test_charts_over_time_zoom_in_and_out_together(opened: Browser) -> None:
    choose(opened, "session 77")
    before = opened.evaluate(f"{plot('gaps')}.layout.xaxis.range")
    opened.evaluate(f"{plot('positions')}.scrollIntoView()")
    left, top, width, height = opened.evaluate(
        f"(() => {{ const box = {plot('positions')}.getBoundingClientRect();"
        " return [box.left, box.top, box.width, box.height]; })()"
    )
    opened.drag(left + width * 0.4, top + height * 0.3, left + width * 0.6, top + height * 0.6)
    opened.wait_for(f"{plot('gaps')}.layout.xaxis.range[0] > {before[0] + 1}")
    ranges = [opened.evaluate(f"{plot(name)}.layout.xaxis.range") for name in ("positions", "gaps")]
    assert ranges[0] == ranges[1]
    opened.evaluate(
        "[...document.querySelectorAll('.chart button')]"
        ".find((each) => each.textContent === 'traffic').click()"
    )
    opened.wait_for(f"{plot('gaps')}.layout.xaxis.range[0] === {before[0]}")


def test_pointing_at_a_gap_shows_its_details(opened: Browser) -> None:
    choose(opened, "session 77")
    (texts,) = traces(opened, "gaps", "each.text")
    assert "repaired, lost after the capture point" in texts[0]
    opened.evaluate(f"{plot('gaps')}.scrollIntoView()")
    opened.evaluate(f"Plotly.Fx.hover({plot('gaps')}, [{{curveNumber: 0, pointNumber: 0}}])")
    opened.wait_for("document.querySelector('[data-chart=gaps] .hoverlayer text')")


def test_themes_and_the_size_of_a_phone(opened: Browser) -> None:
    choose(opened, "session 77")
    high = f"{plot('positions')}.data.find((each) => each.name === 'high').line.color"
    light = opened.evaluate(high)
    opened.evaluate("document.getElementById('theme').click()")
    opened.wait_for(f"{high} !== '{light}'")
    opened.resize(*PHONE, mobile=True)
    opened.wait_for("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.full
def test_a_damaged_page_is_reported(report: Path, tmp_path: Path) -> None:
    """The tests above would detect a chart that cannot be drawn."""
    damaged = tmp_path / "page.html"
    text = report.read_text(encoding="utf-8").replace('id="series">', 'id="series">AAAA', 1)
    damaged.write_text(text, encoding="utf-8")
    with Browser(tmp_path / "profile") as browser:
        browser.open(damaged)
        browser.wait_for("document.querySelector('.chart.broken')")
        message = browser.evaluate("document.querySelector('.chart.broken').textContent")
        assert message.startswith("The chart cannot be drawn")
        assert browser.complaints
