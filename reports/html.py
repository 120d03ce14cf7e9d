"""HTML elements for all report pages. All text is escaped in this module."""

import unicodedata
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

ASSETS = Path(__file__).parent / "assets"
CHART_SCRIPTS = ("thin.js", "chart.js", "page.js")
THIN_SPACE = "\u2009"
ABSENT = "-"


class Markup(str):
    """A string that is already HTML and must not be escaped again."""

    __slots__ = ()


def page(title: str, body: object, styles: Sequence[str], scripts: Sequence[str]) -> str:
    """Return a complete HTML page that contains the given style sheets and scripts."""
    style, script = ("\n".join(map(_asset, names)) for names in (styles, scripts))
    head = joined(
        [
            Markup('<meta charset="utf-8">'),
            Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            # With an empty icon, browsers do not request one from a server.
            Markup('<link rel="icon" href="data:,">'),
            element("title", title),
            Markup(f"<style>\n{style}</style>"),
            Markup(f"<script>\n{script}</script>"),
        ]
    )
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{text(body)}</body></html>\n'
    )


def page_header(title: str, outcome: str, facts: Sequence[str]) -> Markup:
    """Return a page's header: title, outcome, theme button and facts."""
    parts = [
        element("h1", title),
        badge(outcome),
        element("span", class_="grow"),
        element("button", "dark", id="theme", type="button", title="switch between light and dark"),
        element("p", " · ".join(facts), class_="facts"),
    ]
    return element("header", joined(parts), class_="top")


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def text(value: object) -> Markup:
    """Convert a value to HTML. Markup stays unchanged, None becomes a dash, other values are
    escaped.
    """
    if isinstance(value, Markup):
        return value
    return Markup(ABSENT if value is None else escape(visible(str(value))))


def visible(value: str) -> str:
    """Escape the characters that a reader cannot see, such as those that reverse the order of the
    characters after them. Spaces, tabs and line feeds are kept.
    """
    if value.isprintable():
        return value
    kept = (
        each
        if each.isprintable() or each in "\n\t" or unicodedata.category(each) == "Zs"
        else each.encode("unicode_escape").decode()
        for each in value
    )
    return "".join(kept)


def element(tag: str, content: object = "", **attributes: object) -> Markup:
    """Return an HTML element. `class_` becomes the attribute `class`, `data_x` becomes `data-x`."""
    names = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    inside = "".join(f' {name}="{escape(visible(str(value)))}"' for name, value in names.items())
    return Markup(f"<{tag}{inside}>{text(content)}</{tag}>")


def joined(parts: Iterable[object]) -> Markup:
    """Concatenate HTML fragments."""
    return Markup("".join(text(part) for part in parts))


def number(value: int | float | None, digits: int = 0) -> str | None:
    """Format a number with thin spaces between groups of three digits."""
    return None if value is None else f"{value:,.{digits}f}".replace(",", THIN_SPACE)


def badge(outcome: str, size: str = "") -> Markup:
    """Return an HTML badge in the colour of an outcome."""
    return element("span", outcome, class_=f"badge {size} {outcome}".replace("  ", " "))


def table(
    heads: Sequence[tuple[str, str]], rows: Iterable[Sequence[object]], class_: str = ""
) -> Markup:
    """Return an HTML table in a scrolling container. `heads` has the columns' names and classes."""
    top = joined(element("th", name, class_=kind) for name, kind in heads)
    body = joined(
        element(
            "tr",
            joined(
                element("td", cell, class_=kind) for cell, (_, kind) in zip(row, heads, strict=True)
            ),
        )
        for row in rows
    )
    inside = element("thead", element("tr", top)) + element("tbody", body)
    return element("div", element("table", Markup(inside), class_=class_), class_="scroll")


def details(summary: object, remark: object, content: object, is_open: bool = False) -> Markup:
    """Return a collapsible HTML section."""
    head = element("summary", joined([summary, element("span", remark, class_="where")]))
    mark = " open" if is_open else ""
    return Markup(f"<details{mark}>{head}{text(content)}</details>")
