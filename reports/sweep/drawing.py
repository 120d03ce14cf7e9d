"""A chart of a sweep as SVG, which needs no script."""

from collections.abc import Iterator

from windtunnel.reports.html import Markup, element, joined
from windtunnel.reports.sweep.lines import Line, short

LINES_MAX = 8
"""Maximum number of lines in a chart. There are as many colours."""
WIDTH, HEIGHT = 520, 260
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 26, 40
TICKS = 4


def chart(figure: str, lines: list[Line], axis: list[str], x_name: str) -> Markup:
    """Return a chart of a figure with a unit as SVG, with its title and legend."""
    shown = lines[:LINES_MAX]
    top = max((each for line in shown for each in line.values if each is not None), default=0.0)
    top = _round_up(top)
    parts = [*_grid(top, axis)]
    for index, line in enumerate(shown):
        parts += _line(line, index, top, axis)
    title = f"{figure} over {short(x_name)}"
    drawing = element(
        "svg", joined(parts), viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=title
    )
    legend = [
        element("span", line.name, style=f"color: var(--run-{index + 1})")
        for index, line in enumerate(shown)
        if line.name
    ]
    if len(lines) > len(shown):
        legend.append(element("span", f"The first {LINES_MAX} of {len(lines)} lines."))
    head = element("figcaption", title)
    return element("figure", joined([head, drawing, element("p", joined(legend))]))


def _grid(top: float, axis: list[str]) -> Iterator[Markup]:
    """Yield the lines and texts of both axes."""
    for index in range(TICKS + 1):
        value = top * index / TICKS
        y = _y(value, top)
        yield element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid")
        yield element("text", f"{value:.3g}", x=LEFT - 6, y=y + 4, class_="left")
    for index, text in enumerate(axis):
        yield element("text", text, x=_x(index, len(axis)), y=HEIGHT - BOTTOM + 20)


def _line(line: Line, index: int, top: float, axis: list[str]) -> Iterator[Markup]:
    """Yield a line and its points. A point that is missing interrupts it."""
    colour = f"var(--run-{index + 1})"
    piece: list[str] = []
    points = []
    for at, value in enumerate((*line.values, None)):
        if value is None:
            if len(piece) > 1:
                yield element(
                    "polyline", points=" ".join(piece), style=f"stroke: {colour}", fill="none"
                )
            piece = []
            continue
        x, y = _x(at, len(axis)), _y(value, top)
        piece.append(f"{x},{y}")
        about = element("title", f"{axis[at]}{', ' if line.name else ''}{line.name}: {value:.4g}")
        points.append(element("circle", about, cx=x, cy=y, r=3.5, style=f"fill: {colour}"))
    yield from points


def _x(index: int, count: int) -> float:
    width = WIDTH - LEFT - RIGHT
    return round(LEFT + width * (index + 0.5) / count, 1)


def _y(value: float, top: float) -> float:
    return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / top, 1)


def _round_up(value: float) -> float:
    """Return a round number that is at least the value, as the end of an axis."""
    if value <= 0:
        return 1.0
    unit = 1.0
    while unit > value:
        unit /= 10
    while unit * 10 <= value:
        unit *= 10
    return next(
        unit * step for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if unit * step >= value
    )
