"""calibration.html: requested and measured impairments in a page that can be viewed offline.

The page has a table and a chart. The chart shows measured values relative to the requested values,
with 99.9 % intervals. Ratios, lengths and times thus share one axis, on which 1 is exact.
"""

from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.regular_file import replace_file
from windtunnel.harness.artifact.run.calibration import Calibration, Measure
from windtunnel.reports.html import element, joined, table
from windtunnel.reports.measurements.drawing_page import drawing, drawing_page

NAME = "calibration.html"
_HEADS = (
    ("impairment", ""),
    ("quantity", ""),
    ("unit", ""),
    ("requested", "num"),
    ("measured", "num"),
    ("99.9 % interval", "num"),
    ("samples", "num"),
    ("tolerance", ""),
    ("", ""),
)


def write_calibration_page(found: Calibration, folder: Path) -> Path:
    """Write a calibration's HTML page to a folder, and return the page's path."""
    path = folder / NAME
    replace_file(path, _page(found))
    return path


def _page(found: Calibration) -> str:
    title = f"Calibration of {found.backend}"
    summary = (
        f"kernel {found.kernel}, at most {found.packets_per_s} packets/s, seed {found.seed}; "
        f"{sum(not each.holds for each in found.measures)} outside tolerance, "
        f"{len(found.voids)} invalid"
    )
    body = joined(
        [
            element("h1", title),
            element("p", summary),
            drawing("chart", 36),
            table(_HEADS, [_row(each) for each in found.measures]),
            joined(element("p", f"invalid: {text}", class_="missed") for text in found.voids),
        ]
    )
    return drawing_page(title, body, {"chart": figure(found)})


def _row(measure: Measure) -> list[object]:
    result: object = ""
    if measure.floor:
        result = "ok" if measure.holds else element("span", "missed", class_="missed")
    return [
        measure.impairment,
        measure.quantity,
        measure.unit,
        None if measure.asked is None else f"{measure.asked:.3f}",
        f"{measure.delivered:.3f}",
        f"{measure.low:.3f} .. {measure.high:.3f}",
        measure.samples,
        measure.floor,
        result,
    ]


def figure(found: Calibration) -> dict[str, Any]:
    """Return a plotly figure of the ratios of measured to requested values, with confidence
    intervals.
    """
    drawn = [each for each in found.measures if each.asked]
    ratios = [_ratios(each) for each in drawn]
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "markers",
                "x": [ratio for ratio, _, _ in ratios],
                "y": [f"{each.impairment}: {each.quantity}" for each in drawn],
                "error_x": {
                    "type": "data",
                    "symmetric": False,
                    "array": [high - ratio for ratio, _, high in ratios],
                    "arrayminus": [ratio - low for ratio, low, _ in ratios],
                },
                "text": [
                    f"requested {each.asked:.3f}, measured {each.delivered:.3f} {each.unit}"
                    for each in drawn
                ],
                "marker": {"color": ["#1b6ef3" if each.holds else "#b3261e" for each in drawn]},
            }
        ],
        "layout": {
            "xaxis": {"title": {"text": "measured / requested"}},
            "yaxis": {"automargin": True, "autorange": "reversed"},
            "shapes": [
                {
                    "type": "line",
                    "x0": 1,
                    "x1": 1,
                    "y0": 0,
                    "y1": 1,
                    "yref": "paper",
                    "line": {"dash": "dot"},
                }
            ],
        },
    }


def _ratios(measure: Measure) -> tuple[float, float, float]:
    assert measure.asked
    return (
        measure.delivered / measure.asked,
        measure.low / measure.asked,
        measure.high / measure.asked,
    )
