"""capture-report.html: a capture analysis as a single HTML file that can be viewed offline.

    header, summary
    charts: positions, gaps, stalls, repair times, losses by link      (capture.js)
    tables: flows, links, windows, the longest repairs, captures
    library and series, compressed

The style sheet, the chart library and the unpacking script are shared with suite reports.
"""

from html import escape
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.artifact.regular_file import replace_file
from windtunnel.reports.analysis.output.durations import duration
from windtunnel.reports.analysis.output.page_series import stream_id, stream_label, streams_document
from windtunnel.reports.analysis.output.summary import summary_lines
from windtunnel.reports.analysis.output.tables import Tables
from windtunnel.reports.analysis.streams.repair import NOT_LOST
from windtunnel.reports.charts.packing import library, pack, packed
from windtunnel.reports.html import Markup, badge, details, element, joined, number, page, table

SCRIPTS = ("capture.js", "page.js")
STYLES = ("report.css", "capture.css")
GAPS_SHOWN = 50
FLOWS_SHOWN = 500

_TEXT, _NUMBER = "text", "number"


def write_capture_page(tables: Tables, path: Path) -> None:
    """Write a capture analysis as HTML, atomically replacing an existing file. Raises OSError if
    the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, capture_page(tables))


def capture_page(tables: Tables) -> str:
    """Return a capture analysis as an HTML page."""
    document = streams_document(tables)
    parts = [_header(tables), element("main", joined(_cards(tables, document)))]
    if document["streams"]:
        parts += [library(), packed("series", pack(document))]
    return page("Windtunnel · captures", joined(parts), STYLES, SCRIPTS)


def _header(tables: Tables) -> Markup:
    frames = sum(tables.captures["frames"].to_pylist())
    points = len(set(tables.captures["vantage_point"].to_pylist()))
    facts = [
        f"{tables.captures.num_rows} {noun_for(tables.captures.num_rows, 'file')}",
        f"{points} {noun_for(points, 'vantage point')}",
        f"{number(frames)} {noun_for(frames, 'frame')}",
    ]
    return element(
        "header",
        joined(
            [
                element("h1", "Captures"),
                badge("INCONCLUSIVE") if tables.is_partial else "",
                element("span", class_="grow"),
                element(
                    "button",
                    "dark",
                    id="theme",
                    type="button",
                    title="switch between light and dark",
                ),
                element("p", " · ".join(facts), class_="facts"),
            ]
        ),
        class_="top",
    )


def _cards(tables: Tables, document: dict[str, Any]) -> list[Markup]:
    summary = element(
        "ul",
        joined(
            element("li", line, class_="partial" if line.startswith("PARTIAL") else "")
            for line in summary_lines(tables)
        ),
        class_="says",
    )
    cards = [element("section", joined([element("h2", "Summary"), summary]), class_="card")]
    if document["streams"]:
        chart = element("div", "drawing …", class_="chart", data_series="series")
        cards.append(element("section", chart, class_="card"))
    tables_shown = [
        _flows(tables),
        _links(tables),
        _windows(tables),
        _gaps(tables),
        _captures(tables),
    ]
    cards.append(element("section", joined(tables_shown), class_="card"))
    return cards


def _table(
    title: str, heads: list[tuple[str, str]], rows: list[tuple[str, list[Any]]], is_open: bool
) -> Markup:
    """Return an HTML table whose rows name their stream, so the page can filter them by stream."""
    markup = table(heads, [cells for _, cells in rows])
    for stream, _ in rows:
        mark = f' data-stream="{escape(stream)}"' if stream else " "
        markup = Markup(markup.replace("<tr><td", f"<tr{mark}><td", 1))
    return details(title, "", markup, is_open=is_open) if rows else Markup("")


def _flows(tables: Tables) -> Markup:
    heads = [("stream", _TEXT)] + [
        (name, _NUMBER)
        for name in (
            "messages",
            "frames",
            "retransmitted",
            "reordered",
            "duplicates",
            "NAKs",
            "position",
        )
    ]
    rows = [
        (
            stream_id(flow),
            [
                stream_label(flow),
                *(
                    number(flow[name])
                    for name in (
                        "messages", "first_frames", "resent_frames", "reordered_frames",
                        "duplicate_frames", "naks", "high_position",
                    )
                ),
            ],
        )
        for flow in tables.flows.slice(0, FLOWS_SHOWN).to_pylist()
    ]  # fmt: skip
    return _table("Streams", heads, rows, True)


def _links(tables: Tables) -> Markup:
    heads = [("link", _TEXT)] + [
        (name, _NUMBER)
        for name in (
            "sent",
            "lost, retransmits included",
            "duplicated",
            "reordered",
            "median delay",
            "p99 delay",
            "clock offset",
        )
    ]
    rows = []
    for link in tables.links.slice(0, FLOWS_SHOWN).to_pylist():
        clocks = "unknown"
        if link["clock_offset_ns"] is not None:
            offset, error = (link[f"clock_{name}_ns"] / 1e6 for name in ("offset", "error"))
            clocks = f"{offset:+.3f} ± {error:.3f} ms"
        name = f"{link['from_point']} → {link['to_point']}, stream {link['stream_id']}"
        counts = (link[f"{each}_frames"] for each in ("sent", "lost", "copied", "reordered"))
        delays = (duration(link[f"delay_{each}_ns"]) for each in ("median", "p99"))
        rows.append(("", [name, *(number(each) for each in counts), *delays, clocks]))
    return _table("Links between vantage points", heads, rows, True)


def _windows(tables: Tables) -> Markup:
    heads = [("stream", _TEXT)] + [
        (name, _NUMBER)
        for name in (
            "max window", "mean SM interval", "max SM interval", "over-runs", "stalls",
            "stall time", "median RTT",
        )
    ]  # fmt: skip
    rows = [
        (
            stream_id(window),
            [
                stream_label(window),
                number(window["window_max"]),
                duration(window["status_interval_mean_ns"]),
                duration(window["status_interval_max_ns"]),
                number(window["over_runs"]),
                number(window["stalls"]),
                duration(window["stall_ns"]),
                duration(window["rtt_median_ns"]),
            ],
        )
        for window in tables.windows.slice(0, FLOWS_SHOWN).to_pylist()
    ]
    return _table("Flow control", heads, rows, False)


def _gaps(tables: Tables) -> Markup:
    heads = [("stream", _TEXT)] + [
        (name, _NUMBER)
        for name in ("position", "bytes", "NAKs", "outcome", "repair time", "resend time")
    ]
    gaps = [gap for gap in tables.gaps.to_pylist() if gap["outcome"] not in NOT_LOST]
    worst = sorted(gaps, key=_repair_order)[:GAPS_SHOWN]
    rows = [
        (
            stream_id(gap),
            [
                stream_label(gap),
                number(gap["position"]),
                number(gap["length"]),
                number(gap["nak_count"]),
                gap["outcome"],
                duration(gap["time_to_repair_ns"]),
                duration(gap["time_to_resend_ns"]),
            ],
        )
        for gap in worst
    ]
    title = f"Slowest repairs of {number(len(gaps))} {noun_for(len(gaps), 'gap')}"
    return _table(title, heads, rows, False)


def _repair_order(gap: dict[str, Any]) -> tuple[bool, int]:
    """Return a gap's sort key: unrepaired gaps come first, then the slowest repairs."""
    known_ns = gap["time_to_repair_ns"] or gap["time_to_resend_ns"] or 0
    return gap["outcome"] == "repaired", -known_ns


def _captures(tables: Tables) -> Markup:
    heads = [("file", _TEXT), ("vantage point", _TEXT)] + [
        (name, _NUMBER)
        for name in ("packets", "Aeron frames", "wrong checksum", "other UDP", "not UDP")
    ]
    rows = [
        (
            "",
            [
                each["file"],
                each["vantage_point"],
                number(each["packets"]),
                number(each["frames"]),
                number(each["wrong_checksums"]),
                number(each["unrecognised"] + each["other_ports"]),
                number(each["not_udp"]),
            ],
        )
        for each in tables.captures.to_pylist()
    ]
    return _table("Files", heads, rows, False)
