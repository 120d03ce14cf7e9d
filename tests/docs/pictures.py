"""Makes the pictures of the documentation from a real run: a terminal and a report page.

python -m tests.docs.pictures        needs root (namespaces) and Chromium; takes about a minute

docs/pictures/terminal.svg    the terminal during the third run, as a pseudo terminal received it
docs/pictures/report.png      the report of the first run, in headless Chromium
"""

import fcntl
import io
import os
import pty
import re
import struct
import sys
import tempfile
import termios
from pathlib import Path

from tests.browser.chromium import Browser

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "pictures"
SIZE_BYTES_MAX = 200_000
COLUMNS = 120
PAGE = (1240, 1000)
SCENARIOS = ("loss/reliable-2pct", "reorder/reliable-swap-and-hold", "loss/unreliable-2pct")
COMMAND = "windtunnel run"

_ERASED = re.compile(r"\r\x1b\[2K")
_CURSOR = re.compile(r"\x1b\[\?25[lh]")


def record(argv: list[str], columns: int) -> str:
    """Run a command in a pseudo terminal and return what it printed, with escape sequences."""
    process, terminal = pty.fork()
    if process == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(argv[0], argv)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    received = b""
    try:
        while piece := os.read(terminal, 1 << 16):
            received += piece
    except OSError:
        pass  # Linux reports the end of a pseudo terminal as an error.
    os.close(terminal)
    os.waitpid(process, 0)
    return received.decode()


def screens(recorded: str) -> list[str]:
    """Return each state of the screen: the printed lines, and the live line below them."""
    scrolled, found = "", []
    for piece in _ERASED.split(_CURSOR.sub("", recorded)):
        lines = piece.replace("\r\n", "\n").rpartition("\n")
        scrolled += lines[0] + lines[1]
        found.append(scrolled + lines[2].strip("\r"))
    return found


def chosen_screen(found: list[str], run_count: int) -> str:
    """Return a screen from the middle of the last run's traffic."""
    during = [each for each in found if re.search(rf"\b{run_count}/{run_count} .*traffic", each)]
    assert during, "expected a live line of the last run's traffic, found none"
    return during[len(during) * 3 // 4]


def write_terminal(screen: str, path: Path) -> None:
    """Draw a screen as SVG, with fonts of the viewer, so that nothing is downloaded."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(f"$ {COMMAND}\n{screen}"))
    svg = console.export_svg(title="Windtunnel", unique_id="terminal")
    path.write_text(re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL), encoding="utf-8")


def write_report(report: Path, path: Path) -> None:
    """Take a picture of the first run of a report."""
    with tempfile.TemporaryDirectory() as profile, Browser(Path(profile), *PAGE) as browser:
        browser.resize(*PAGE)
        browser.open(report)
        browser.wait_for("document.querySelector('#run-0 .plot[data-drawn]')")
        browser.evaluate("document.querySelector('#run-0').scrollIntoView()")
        browser.wait_for("!Page.charts[0].busy")
        browser.screenshot(path)
        assert browser.complaints == []


def main() -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as runs:
        program = str(Path(sys.executable).parent / "windtunnel")
        argv = [program, "run", *SCENARIOS, "--fidelity", "netns", "--out", runs]
        recorded = record(argv, COLUMNS)
        reports = list(Path(runs).glob("*/report.html"))
        assert len(reports) == 1, recorded
        write_terminal(chosen_screen(screens(recorded), len(SCENARIOS)), FOLDER / "terminal.svg")
        write_report(reports[0], FOLDER / "report.png")
    for path in FOLDER.iterdir():
        assert path.stat().st_size < SIZE_BYTES_MAX, f"{path}: more than {SIZE_BYTES_MAX} bytes"
    return 0


if __name__ == "__main__":
    sys.exit(main())
