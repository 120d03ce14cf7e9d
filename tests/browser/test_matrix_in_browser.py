"""matrix.html is opened offline in headless Chromium."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Browser, program
from tests.unit.reports.synthetic_matrix import make_matrix
from tests.unit.reports.test_matrix_page import BAD, write
from windtunnel.reports.matrix_page import write_matrix_page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(program() is None, reason="no Chromium: apt-get install chromium"),
]
PHONE = (390, 844)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    matrix = make_matrix({BAD: ("PASS", "FAIL", "INCONCLUSIVE")})
    return write_matrix_page(write(tmp_path_factory.mktemp("runs") / "matrix", matrix).path)


@pytest.fixture
def opened(page: Path, tmp_path: Path) -> Iterator[Browser]:
    with Browser(tmp_path / "profile") as browser:
        browser.prefer_dark(False)
        browser.open(page)
        browser.wait_for("document.documentElement.dataset.theme === 'light'")
        yield browser
        assert browser.complaints == []
        assert {each.partition("#")[0] for each in browser.requests} <= {
            page.as_uri(),
            (page.parent / "pyaeron-to-ours" / "report.html").as_uri(),
        }


def test_cells_have_the_colour_of_their_verdict(opened: Browser) -> None:
    colours = {
        name: opened.evaluate(f"getComputedStyle(document.querySelector('.cell.{name}')).color")
        for name in ("PASS", "FAIL", "UNSUPPORTED")
    }
    assert len(set(colours.values())) == 3
    before = colours["FAIL"]
    opened.evaluate("document.getElementById('theme').click()")
    after = opened.evaluate("getComputedStyle(document.querySelector('.cell.FAIL')).color")
    assert after != before


def test_a_cell_shows_the_reason_and_links_to_the_run(opened: Browser, page: Path) -> None:
    assert "because" in opened.evaluate("document.querySelector('.cell.FAIL').title")
    opened.evaluate("document.querySelector('.cell.FAIL').click()")
    opened.wait_for("location.pathname.endsWith('/pyaeron-to-ours/report.html')")
    opened.wait_for("document.readyState === 'complete'")
    assert "FAIL" in opened.evaluate(
        "document.querySelector(location.hash + ' .badge').textContent"
    )


def test_on_a_phone_the_cells_scroll_and_not_the_page(opened: Browser) -> None:
    opened.resize(*PHONE, mobile=True)
    opened.wait_for("document.querySelector('#cells .scroll').scrollWidth > innerWidth")
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
