"""The few pieces of HTML that all parts of the page are built from; every text is escaped here."""

from collections.abc import Iterable, Sequence
from html import escape

THIN_SPACE = "\u2009"
ABSENT = "-"


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object) -> Markup:
    """The value as HTML: markup as it is, anything else escaped, None as a dash."""
    if isinstance(value, Markup):
        return value
    return Markup(ABSENT if value is None else escape(str(value)))


def element(tag: str, content: object = "", **attributes: object) -> Markup:
    """One element; `class_` and the like lose their underscore, `data_x` becomes `data-x`."""
    names = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    inside = "".join(f' {name}="{escape(str(value))}"' for name, value in names.items())
    return Markup(f"<{tag}{inside}>{text(content)}</{tag}>")


def joined(parts: Iterable[object]) -> Markup:
    """The parts one after the other."""
    return Markup("".join(text(part) for part in parts))


def number(value: int | float | None, digits: int = 0) -> str | None:
    """1234567 -> 1 234 567, with thin spaces."""
    return None if value is None else f"{value:,.{digits}f}".replace(",", THIN_SPACE)


def badge(outcome: str, size: str = "") -> Markup:
    """An outcome in its colour."""
    return element("span", outcome, class_=f"badge {size} {outcome}".replace("  ", " "))


def table(
    heads: Sequence[tuple[str, str]], rows: Iterable[Sequence[object]], class_: str = ""
) -> Markup:
    """A table that scrolls by itself where it is too wide; heads are (name, column's class)."""
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
    """A part that opens at a click."""
    head = element("summary", joined([summary, element("span", remark, class_="where")]))
    mark = " open" if is_open else ""
    return Markup(f"<details{mark}>{head}{text(content)}</details>")
