"""report.html is opened offline in headless Chromium, and used.

Each test starts with a page that was loaded and drawn, and fails if the browser complains.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Browser, program
from tests.unit.reports.synthetic_suite import RunParameters, make_suite
from windtunnel.reports.page import write_suite_report

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(program() is None, reason="no Chromium: apt-get install chromium"),
]

OUTCOMES = ("PASS", "FAIL", "PASS")
MADE = RunParameters(frame_count=2500)
DRAWN = "document.querySelector('#run-0 .plot[data-drawn]')"
CHART = "Page.charts[0]"
PHONE = (390, 844)
NEXT_LOSS, PREVIOUS_LOSS = "loss \u203a", "\u2039 loss"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    suite = make_suite(tmp_path_factory.mktemp("runs") / "suite", MADE, OUTCOMES)
    return write_suite_report(suite.path)


@pytest.fixture
def opened(browser: Browser, report: Path) -> Iterator[Browser]:
    """Open the report; afterwards check for complaints, and for requests except the file itself."""
    browser.complaints.clear()
    browser.requests.clear()
    browser.resize(1280, 1000)
    browser.prefer_dark(False)
    browser.open(report)
    browser.wait_for(DRAWN)
    yield browser
    assert browser.complaints == []
    assert browser.requests == [report.as_uri()]


def settle(browser: Browser) -> None:
    """Wait until the last change of the first chart is drawn."""
    browser.wait_for(f"!{CHART}.busy")


def click(browser: Browser, text: str) -> None:
    found = browser.evaluate(
        "(() => { const button = [...document.querySelectorAll('#run-0 .chart button, #theme')]"
        f".find((each) => each.textContent.includes({text!r}));"
        " if (button) button.click(); return Boolean(button); })()"
    )
    assert found, f"no button is named {text!r}"
    settle(browser)


def count(browser: Browser, selector: str) -> int:
    return int(browser.evaluate(f"document.querySelectorAll({selector!r}).length"))


def view(browser: Browser) -> tuple[float, float]:
    window = browser.evaluate(f"[{CHART}.view.from, {CHART}.view.to]")
    return float(window[0]), float(window[1])


def trace(browser: Browser, name: str, field: str) -> list[float]:
    found = f"{CHART}.plot.data.find((each) => each.name === {name!r})"
    values: list[float] = browser.evaluate(f"[...(({found} || {{}}).{field} || [])]")
    return values


def test_draws_lines_and_marks(opened: Browser) -> None:
    assert count(opened, "#run-0 .plot .scatterlayer .js-line") >= 10
    assert count(opened, "#run-0 .plot .points path") > 30
    names = opened.evaluate(f"{CHART}.plot.data.map((each) => each.name)")
    lines = {"pub-lmt", "snd-lmt", "snd-pos", "rcv-hwm", "rcv-pos", "sub-pos"}
    assert lines | {"gap", "dropped", "NAK", "retransmit"} <= set(names)


def test_lines_end_where_the_stream_ended(opened: Browser) -> None:
    end = opened.evaluate(f"{CHART}.stream.lines.find((each) => each.name === 'sub-pos').v.at(-1)")
    assert trace(opened, "sub-pos", "y")[-1] == end > 1_000_000


def test_a_drag_zooms_in_and_buttons_zoom_out(opened: Browser) -> None:
    opened.evaluate("document.querySelector('#run-0 .plot').scrollIntoView()")
    box = opened.evaluate(
        "(() => { const box = document.querySelector('#run-0 .plot').getBoundingClientRect();"
        " return [box.left, box.top, box.width, box.height]; })()"
    )
    left, top, width, height = box
    before = view(opened)
    opened.drag(left + width * 0.4, top + height * 0.3, left + width * 0.6, top + height * 0.305)
    opened.wait_for(f"{CHART}.view.from > {before[0] + 1}")
    settle(opened)
    after = view(opened)
    assert (after[1] - after[0]) < 0.4 * (before[1] - before[0])
    # The range of positions follows the zoom, so the lines fill the height of the chart.
    low, high = opened.evaluate(f"{CHART}.plot.layout.yaxis.range")
    shown = [each for each in trace(opened, "rcv-pos", "y") if low <= each <= high]
    assert max(shown) - min(shown) > 0.5 * (high - low)
    click(opened, "traffic")
    assert view(opened) == pytest.approx(before)
    click(opened, "whole run")
    assert view(opened)[0] < before[0]
    assert view(opened)[1] >= before[1]


@pytest.mark.full
def test_a_new_window_of_time_resets_the_range_of_positions(opened: Browser) -> None:
    plot = f"{CHART}.plot"
    ranges = "{'yaxis.range[0]': 1000, 'yaxis.range[1]': 2000}"
    opened.evaluate(f"Plotly.relayout({plot}, {ranges}).then(() => 0)")
    opened.wait_for(f"{CHART}.view.range && {CHART}.view.range[1] === 2000")
    settle(opened)
    times = "{'xaxis.range[0]': 100, 'xaxis.range[1]': 200}"
    opened.evaluate(f"Plotly.relayout({plot}, {times}).then(() => 0)")
    opened.wait_for(f"{CHART}.view.to === 200")
    settle(opened)
    assert opened.evaluate(f"{plot}.layout.yaxis.range[1]") > 2000


@pytest.mark.full
def test_zooming_in_shows_points_that_the_whole_run_omits(opened: Browser) -> None:
    click(opened, "+")
    click(opened, "+")
    begin, end = view(opened)
    marks = [each for each in trace(opened, "dropped", "x") if begin <= each <= end]
    whole = opened.evaluate(
        f"[...{CHART}.stream.marks.find((each) => each.kind === 'dropped').t]"
        f".filter((each) => each >= {begin} && each <= {end}).length"
    )
    assert len(marks) == whole > 0


def test_buttons_step_from_loss_to_loss_with_their_repair(opened: Browser) -> None:
    times = opened.evaluate(f"[...{CHART}.stream.marks.find((each) => each.kind === 'dropped').t]")
    click(opened, NEXT_LOSS)
    begin, end = view(opened)
    assert begin + (end - begin) / 4 == pytest.approx(times[0])
    lost_ms, repaired_ms = trace(opened, "repair", "x")[:2]
    assert lost_ms == times[0]
    assert (end - begin) / 3 == pytest.approx(repaired_ms - lost_ms)
    click(opened, NEXT_LOSS)
    begin, end = view(opened)
    assert begin + (end - begin) / 4 == pytest.approx(times[1])
    click(opened, PREVIOUS_LOSS)
    begin, end = view(opened)
    assert begin + (end - begin) / 4 == pytest.approx(times[0])


@pytest.mark.full
def test_a_window_without_a_sample_still_shows_lines_and_marks(opened: Browser) -> None:
    click(opened, NEXT_LOSS)
    low, high = opened.evaluate(f"{CHART}.plot.layout.yaxis.range")
    (lost,) = opened.evaluate(
        f"[...{CHART}.stream.marks.find((each) => each.kind === 'dropped').position].slice(0, 1)"
    )
    sent = opened.evaluate(
        f"Thin.between({CHART}.stream.lines.find((each) => each.name === 'snd-pos'), "
        f"({CHART}.view.from + {CHART}.view.to) / 2)"
    )
    assert low < lost < high
    assert low < sent < high


@pytest.mark.full
def test_a_plateau_among_many_points_is_drawn_level(opened: Browser) -> None:
    """A position rises with each point, except for a pause of 5,000 ms."""
    pause = "const t = [...Array(1000).keys()].map((each) => each < 450 ? each : each + 5000);"
    level = "const v = [...Array(1000).keys()].map((each) => each < 450 ? each : each - 1);"
    drawn = opened.evaluate(
        f"(() => {{ {pause} {level} return Thin.line({{t, v}}, 0, 6000, 10); }})()"
    )
    points = dict(zip(drawn["x"], drawn["y"], strict=True))
    assert points[449] == points[5450] == 449
    assert len(points) <= 40


def test_a_low_line_has_a_range_that_fits_it(opened: Browser) -> None:
    line = "{t: [0, 1], v: [0, 96]}"
    low, high = opened.evaluate(f"Thin.span([{line}], 0, 1)")
    assert -16 < low < 0
    assert 96 < high < 112
    assert opened.evaluate("Thin.span([{t: [0], v: [96]}], 0, 1)") == [32, 160]


@pytest.mark.full
def test_plateaus_before_a_burst_are_drawn_level(opened: Browser) -> None:
    """A position rises 50 times in 500 ms, and then 1,000 times in 1 ms."""
    drawn = opened.evaluate(
        "(() => { const t = [], v = [];"
        " for (let at = 0; at < 50; at++) { t.push(10 * at, 10 * at + 9); v.push(at, at); }"
        " for (let at = 0; at < 1000; at++) { t.push(500 + at / 1000); v.push(50 + at); }"
        " return Thin.line({t, v}, 0, 501, 200); })()"
    )
    points = dict(zip(drawn["x"], drawn["y"], strict=True))
    assert all(points[10 * at] == points[10 * at + 9] == at for at in range(50))
    assert drawn["y"][-1] == 1049
    assert len(points) <= 800


def test_chooses_a_stream(opened: Browser) -> None:
    first = trace(opened, "snd-pos", "y")
    click(opened, "term-1m")
    assert trace(opened, "snd-pos", "y") != first
    assert opened.evaluate(f"{CHART}.stream.stream_id") == 1002
    selected = "document.querySelector('#run-0 [aria-selected=true]').textContent"
    assert opened.evaluate(selected) == "term-1m \u00b7 stream 1002"


def test_a_stream_whose_name_is_its_id_is_not_named_twice(opened: Browser) -> None:
    opened.evaluate(f"{CHART}.stream.traffic = 'stream-1001 session 7', {CHART}.build()")
    tab = "document.querySelector('#run-0 [role=tab]').textContent"
    assert opened.evaluate(tab) == "stream-1001 session 7"
    settle(opened)


def test_hides_a_kind_of_event_and_a_line(opened: Browser) -> None:
    assert trace(opened, "NAK", "x")
    click(opened, "NAK")
    assert trace(opened, "NAK", "x") == []
    click(opened, "NAK")
    assert trace(opened, "NAK", "x")
    opened.evaluate("document.querySelector('#run-0 .legend .entry').click()")
    settle(opened)
    assert trace(opened, "pub-lmt", "x") == []


def test_pointing_shows_the_value_of_every_line(opened: Browser) -> None:
    opened.evaluate("document.querySelector('#run-0 .plot').scrollIntoView()")
    box = opened.evaluate(
        "(() => { const box = document.querySelector('#run-0 .plot').getBoundingClientRect();"
        " return [box.left, box.top, box.width]; })()"
    )
    opened.point(box[0] + box[2] / 2, box[1] + 100)
    values = (
        "[...document.querySelectorAll('#run-0 .legend .value')].map((each) => each.textContent)"
    )
    opened.wait_for(f"{values}.every((each) => each !== '')")
    sent, received = (int(opened.evaluate(values)[index].replace("\u2009", "")) for index in (2, 4))
    assert sent >= received > 100_000


EVERY_KIND = f"""(() => {{
    const chart = {CHART}, stream = chart.stream, first = stream.marks[0];
    stream.marks = Object.keys(Chart.SYMBOLS).map((kind) => ({{ ...first, kind }}));
    chart.labels();
    chart.draw();
}})()"""
OVERLAPS = """(() => {
    const plot = document.querySelector('#run-0 .plot'), frame = plot.getBoundingClientRect();
    const texts = [...plot.querySelectorAll('.main-svg text')].filter((each) => each.textContent);
    const boxes = texts.map((each) => [each.textContent, each.getBoundingClientRect()]);
    const faults = [];
    boxes.forEach(([text, box], index) => {
        if (box.left < frame.left || box.right > frame.right || box.bottom > frame.bottom)
            faults.push(`${text}: outside`);
        boxes.slice(index + 1).forEach(([other, its]) => {
            const across = Math.min(box.right, its.right) - Math.max(box.left, its.left);
            const down = Math.min(box.bottom, its.bottom) - Math.max(box.top, its.top);
            if (across > 0.5 && down > 0.5) faults.push(`${text} and ${other}`);
        });
    });
    return { faults, count: boxes.length };
})()"""


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("size", [(1280, 1000), (700, 900), PHONE], ids=["desk", "narrow", "phone"])
@pytest.mark.parametrize("kinds", ["some", "every"])
def test_no_labels_of_a_chart_overlap(opened: Browser, size: tuple[int, int], kinds: str) -> None:
    opened.resize(*size, mobile=size == PHONE)
    opened.wait_for(f"{CHART}.plot._fullLayout.width <= {size[0]} && !{CHART}.busy")
    if kinds == "every":
        opened.evaluate(EVERY_KIND)
    settle(opened)
    for width_ms in (0, 40, 0.5):
        if width_ms:
            opened.evaluate(f"{CHART}.show({{ from: 123.456, to: {123.456 + width_ms} }})")
            settle(opened)
        found = opened.evaluate(OVERLAPS)
        assert found["count"] > 10
        assert found["faults"] == []


BANDS = f"""(() => {{
    const chart = {CHART};
    chart.data.bands = [
        {{ kind: "cut", name: "cut outage: a->b and b->a", from: 60, to: 120 }},
        {{ kind: "pause", name: "pause freeze: driver on b", from: 110, to: 200 }},
        {{ kind: "kill", name: "kill crash: publisher on a", from: 200.5, to: 260 }},
    ];
    chart.labels();
    chart.draw();
}})()"""


@pytest.mark.full
def test_interruptions_are_bands_with_a_legend(opened: Browser) -> None:
    opened.evaluate(BANDS)
    settle(opened)
    shapes = opened.evaluate(f"{CHART}.plot._fullLayout.shapes.map((each) => [each.x0, each.x1])")
    assert shapes == [[60, 120], [110, 200], [200.5, 260]]
    colours = opened.evaluate(f"{CHART}.plot._fullLayout.shapes.map((each) => each.fillcolor)")
    assert len(set(colours)) == 3
    assert opened.evaluate(OVERLAPS)["faults"] == []
    entries = "[...document.querySelectorAll('#run-0 .legend:last-child .entry')]"
    texts = opened.evaluate(f"{entries}.map((each) => each.textContent)")
    assert texts[0] == "cut outage: a->b and b->a60 to 120 ms"
    opened.evaluate(f"{entries}[1].click()")
    settle(opened)
    assert view(opened) == (pytest.approx(92), pytest.approx(272))


def test_a_mark_has_a_description(opened: Browser) -> None:
    (text, *_) = trace(opened, "dropped", "text")
    assert "term " in str(text)
    assert "attempt 1" in str(text)


@pytest.mark.full
def test_each_run_gets_its_chart_when_it_is_scrolled_into_view(opened: Browser) -> None:
    for index in range(len(OUTCOMES)):
        opened.evaluate(f"document.querySelector('#run-{index} .chart').scrollIntoView()")
        opened.wait_for(f"document.querySelector('#run-{index} .plot[data-drawn]')")
    assert opened.evaluate("Page.charts.length") == len(OUTCOMES)


@pytest.mark.full
def test_the_theme_follows_the_preference_and_the_button(opened: Browser) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    line = f"{CHART}.plot.data.find((each) => each.name === 'snd-pos').line.color"
    light = opened.evaluate(background), opened.evaluate(line)
    opened.prefer_dark(True)
    opened.wait_for("document.documentElement.dataset.theme === 'dark'")
    settle(opened)
    dark = opened.evaluate(background), opened.evaluate(line)
    assert dark[0] != light[0]
    assert dark[1] != light[1]
    click(opened, "light")
    assert (opened.evaluate(background), opened.evaluate(line)) == light


def test_fits_a_phone(opened: Browser) -> None:
    opened.resize(*PHONE, mobile=True)
    opened.wait_for(f"{CHART}.plot._fullLayout.width <= {PHONE[0]} && !{CHART}.busy")
    assert opened.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    assert opened.evaluate(f"{CHART}.plot._fullLayout.width") <= PHONE[0]


def test_details_of_failures_are_open(opened: Browser) -> None:
    shown = "[...document.querySelectorAll('#run-{} details')].map((each) => each.open)"
    assert opened.evaluate(shown.format(0)) == [False] * 4
    assert opened.evaluate(shown.format(1))[0] is True


def test_a_damaged_page_is_reported(browser: Browser, report: Path, tmp_path: Path) -> None:
    """The tests above would detect a chart that cannot be drawn."""
    damaged = tmp_path / "report.html"
    text = report.read_text(encoding="utf-8").replace('id="library">', 'id="library">AAAA', 1)
    damaged.write_text(text, encoding="utf-8")
    browser.complaints.clear()
    browser.resize(1280, 1000)
    browser.open(damaged)
    browser.wait_for("document.querySelector('#run-0 .broken')")
    shown = browser.evaluate("document.querySelector('#run-0 .broken').textContent")
    assert shown.startswith("The chart cannot be drawn")
    assert browser.complaints
