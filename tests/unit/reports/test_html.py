"""Text on report pages is escaped: for HTML, and so that a reader sees each character."""

import pytest

from windtunnel.reports.html import element, page, text

HOSTILE = "a\x1b[2J\u202egpj.exe\u2066\u200b\u2028\x00\udcff"
SHOWN = "a\\x1b[2J\\u202egpj.exe\\u2066\\u200b\\u2028\\x00\\udcff"


def test_characters_that_a_reader_cannot_see_are_escaped() -> None:
    assert text(HOSTILE) == SHOWN
    assert element("td", "x", title=HOSTILE) == f'<td title="{SHOWN}">x</td>'
    page(HOSTILE, "", (), ()).encode()


@pytest.mark.parametrize("each", ["a b", "a\u2009b", "a\u00a0b", "a\n\tb", "größer → ✅", "日本"])
def test_other_characters_are_kept(each: str) -> None:
    assert text(each) == each


def test_markup_is_escaped_once() -> None:
    assert text(text("<b>")) == "&lt;b&gt;"
