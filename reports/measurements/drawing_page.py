"""A page with a table and plotly drawings that can be viewed offline, and has no other scripts."""

import json
from collections.abc import Mapping
from typing import Any

from windtunnel.reports.charts.packing import plotly_script
from windtunnel.reports.html import Markup, element

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; color: #1c2430; }
table { border-collapse: collapse; } td, th { padding: .2rem .7rem; text-align: left; }
td.num, th.num { text-align: right; font-variant-numeric: tabular-nums; }
tr { border-bottom: 1px solid #dde2ea; } .missed { color: #b3261e; font-weight: 600; }
"""


def drawing(name: str, height_rem: float) -> Markup:
    """Return the element in which the drawing with this name appears."""
    return element("div", "", id=name, style=f"height: {height_rem:g}rem")


def drawing_page(title: str, body: Markup, drawings: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a complete page. `drawings` contains a plotly figure by the name of its element."""
    # The JSON must not contain a string that ends the script element.
    figures = json.dumps(drawings).replace("</", "<\\/")
    script = plotly_script().decode("utf-8").replace("</script", "<\\/script")
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        f"{element('title', title)}<style>{_STYLE}</style><script>{script}</script></head>"
        f"<body>{body}<script>const drawings = {figures};"
        "for (const [name, each] of Object.entries(drawings))"
        " Plotly.newPlot(name, each.data, each.layout, {responsive: true});"
        "</script></body></html>"
    )
