"""The page of a benchmark: how many times as good each figure of ours is, round-trip latencies by
percentile, and all figures in a table. It is made from the benchmark's document.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from windtunnel.harness.artifact.regular_file import replace_file
from windtunnel.reports.html import Markup, element, joined, table
from windtunnel.reports.measurements.drawing_page import drawing, drawing_page

TITLE = "Windtunnel benchmark"
OURS = "ours"
BETTER, WORSE = "#1b6ef3", "#b3261e"
COLOURS = {"ours": BETTER, "c": "#d97706"}
ROW_REM = 1.9
_HEADS = (
    ("figure", ""),
    ("unit", ""),
    ("ours", "num"),
    ("range", "num"),
    ("peer", "num"),
    ("range", "num"),
    ("ratio", "num"),
    ("floor", "num"),
)


def write_bench_page(document: Mapping[str, Any], file: Path) -> None:
    """Write the page of a benchmark. Raises OSError if it cannot be written."""
    replace_file(file, bench_page(document))


def bench_page(document: Mapping[str, Any]) -> str:
    """Return the page of a benchmark."""
    machine, settings = document["machine"], document["settings"]
    facts = (
        f"{machine['processor']}, {machine['cores']} cores, Linux {machine['kernel']}. "
        f"{settings['rounds']} rounds of {settings['seconds']:g} s, {settings['threading_mode']}, "
        f"window {settings['window']}, term {settings['term_length']}. Values are medians."
    )
    parts = [element("h1", TITLE), element("p", facts)]
    if machine["warning"]:
        parts.append(element("p", machine["warning"], class_="missed"))
    drawings = dict(_drawings(document))
    for name, figure in drawings.items():
        rows = len(figure["data"][0]["y"]) if name == "ratios" else 12
        parts += [element("h2", figure["title"]), drawing(name, 6 + ROW_REM * rows)]
    parts += [element("h2", "All figures"), table(_HEADS, _rows(document["figures"]))]
    parts += [
        element("p", f"void: {each['case']} of {each['driver']}: {each['void']}", class_="missed")
        for each in document["readings"]
        if each["void"]
    ]
    return drawing_page(TITLE, joined(parts), drawings)


def advantage(figure: Mapping[str, Any]) -> float | None:
    """Return how many times as good a figure of ours is as the peer's, or None if it was not
    compared.
    """
    ratio = figure["ratio"]
    if not ratio:
        return None
    return float(ratio) if figure["better"] == "more" else 1 / float(ratio)


def curve(document: Mapping[str, Any], case: str, driver: str) -> tuple[list[float], list[float]]:
    """Return the percentiles of a driver's round trips, in percent, and the latency at each, the
    median of all rounds in microseconds.
    """
    found = [
        each["values"]
        for each in document["readings"]
        if each["case"] == case and each["driver"] == driver and not each["void"]
    ]
    percents = sorted({float(name[1:]) for values in found for name in values if name[0] == "p"})
    names = [f"p{percent:g}" for percent in percents]
    return percents, [median(values[name] for values in found) for name in names]


def _drawings(document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    compared = [(each["name"], advantage(each)) for each in document["figures"]]
    drawn = [(name, times) for name, times in compared if times is not None]
    if drawn:
        yield "ratios", _bars(drawn)
    for case in dict.fromkeys(each["case"] for each in document["figures"]):
        if case.startswith("rtt-"):
            yield case, _latencies(document, case)


def _bars(drawn: Sequence[tuple[str, float]]) -> dict[str, Any]:
    """Return bars that begin at 1, which is equality, on a logarithmic axis."""
    return {
        "title": "How many times as good as the peer",
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "base": 1,
                "x": [times - 1 for _, times in drawn],
                "y": [name for name, _ in drawn],
                "text": [f"{times:.2f}" for _, times in drawn],
                "hoverinfo": "y+text",
                "marker": {"color": [BETTER if times >= 1 else WORSE for _, times in drawn]},
            }
        ],
        "layout": {
            "xaxis": {"type": "log", "title": {"text": "times, 1 is equal"}},
            "yaxis": {"automargin": True, "autorange": "reversed"},
            "margin": {"t": 10},
        },
    }


def _latencies(document: Mapping[str, Any], case: str) -> dict[str, Any]:
    """Return lines over percentiles. The last one, the maximum, has no place on the axis, which
    shows one in how many round trips is slower.
    """
    data = []
    for driver, title in document["drivers"].items():
        percents, latencies_us = curve(document, case, driver)
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": title,
                "x": [100 / (100 - percent) for percent in percents],
                "y": latencies_us,
                "text": [f"p{percent:g}" for percent in percents],
                "line": {"color": COLOURS.get(driver, WORSE)},
            }
        )
    return {
        "title": f"{case}: latency of round trips",
        "data": data,
        "layout": {
            "xaxis": {"type": "log", "title": {"text": "one in this many is slower"}},
            "yaxis": {"type": "log", "title": {"text": "us"}},
            "margin": {"t": 10},
        },
    }


def _rows(figures: Sequence[Mapping[str, Any]]) -> list[list[object]]:
    return [
        [
            figure["name"],
            figure["unit"],
            *_spread(figure[OURS]),
            *_spread(figure[figure["peer"]]),
            None if figure["ratio"] is None else f"{figure['ratio']:.2f}",
            _floor(figure),
        ]
        for figure in figures
    ]


def _spread(spread: Mapping[str, float] | None) -> tuple[object, object]:
    if spread is None:
        return None, None
    return f"{spread['median']:,.4g}", f"{spread['min']:,.4g} .. {spread['max']:,.4g}"


def _floor(figure: Mapping[str, Any]) -> Markup | None:
    if figure["floor"] is None:
        return None
    bound = "at least" if figure["better"] == "more" else "at most"
    is_missed = figure["holds"] is False
    text = f"{bound} {figure['floor']:g}{', missed' if is_missed else ''}"
    return element("span", text, class_="missed" if is_missed else "held")
