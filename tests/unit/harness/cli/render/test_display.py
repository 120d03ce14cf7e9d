"""Live and plain progress."""

import io
import time
from typing import Any

import pytest

from windtunnel.harness.cli.render.display import (
    LiveDisplay,
    PlainDisplay,
    Rate,
    Verdicts,
    choose,
    fault_counts,
)
from windtunnel.harness.orchestrate.event import RunEvent


def event(kind: str, **more: Any) -> RunEvent:
    return RunEvent(kind=kind, run_index=1, run_count=3, scenario="loss/x", seed=7, **more)


def test_plain_progress_prints_each_quarter_once(capsys: pytest.CaptureFixture[str]) -> None:
    display = PlainDisplay(Verdicts(as_json=False))
    display.on_event(event("run"))
    for fraction in (0.1, 0.26, 0.3, 0.8, 0.9):
        display.on_event(event("progress", fraction=fraction))
    assert capsys.readouterr().err.splitlines() == [
        "[2/3] loss/x  seed 7",
        "[2/3]  25 %",
        "[2/3]  75 %",
    ]


def test_plain_progress_prints_each_quarter_of_a_compilation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    display = PlainDisplay(Verdicts(as_json=False))
    for fraction, text in ((0.0, "loading"), (0.1, "1 of 9"), (0.3, "3 of 9"), (0.4, "4 of 9")):
        display.on_event(event("compile", fraction=fraction, text=text))
    assert capsys.readouterr().err.splitlines() == ["loading", "3 of 9"]


def test_plain_progress_prints_a_compilation_again_after_a_while(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    display = PlainDisplay(Verdicts(as_json=False))
    for now_s in (100.0, 115.0, 130.0, 131.0, 160.0):
        display.on_event(event("compile", text=f"after {now_s - 100:.0f} s"))
    shown = capsys.readouterr().err.splitlines()
    assert shown == ["after 0 s", "after 30 s", "after 60 s"]


def test_plain_progress_does_not_count_a_compilation_without_a_total(
    capsys: pytest.CaptureFixture[str],
) -> None:
    display = PlainDisplay(Verdicts(as_json=False))
    for text in ("loading", "kernels compiled: 1"):
        display.on_event(event("compile", text=text))
    assert capsys.readouterr().err.splitlines() == ["loading"]


def test_plain_progress_has_bytes_and_the_counts_that_are_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    display = PlainDisplay(Verdicts(as_json=False))
    some = {"delivered_bytes": 1_000_000, "total_bytes": 4_000_000}
    display.on_event(event("progress", fraction=0.25, **some, drop_count=1200))
    display.on_event(event("progress", fraction=0.5, **some, drop_count=1200, retransmit_count=0))
    assert capsys.readouterr().err.splitlines() == [
        "[2/3]  25 %  1.0/4.0 MB  1,200 dropped",
        "[2/3]  50 %  1.0/4.0 MB  1,200 dropped  0 retransmits",
    ]


def test_plain_progress_prints_a_phase_only_after_a_silence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now_s = [100.0]
    monkeypatch.setattr("windtunnel.harness.cli.render.display.time.monotonic", lambda: now_s[0])
    display = PlainDisplay(Verdicts(as_json=False))
    display.on_event(event("run"))
    for now_s[0], phase in ((104.9, "start"), (105.0, "subscribe"), (109.9, "traffic")):
        display.on_event(event("phase", phase=phase))
    assert capsys.readouterr().err.splitlines() == ["[2/3] loss/x  seed 7", "[2/3] subscribe"]


def test_rate_counts_from_the_first_delivered_bytes() -> None:
    rate = Rate()
    assert rate.bytes_per_s(0, 10.0) is None
    assert rate.bytes_per_s(1_000_000, 11.0) is None
    assert rate.bytes_per_s(1_000_000, 11.0) is None
    assert rate.bytes_per_s(5_000_000, 13.0) == pytest.approx(2e6)


def test_fault_counts_omit_unknown_counts() -> None:
    assert fault_counts(event("progress")) == []
    assert fault_counts(event("progress", drop_count=0)) == ["0 dropped"]
    known = event("progress", drop_count=12, retransmit_count=3)
    assert fault_counts(known) == ["12 dropped", "3 retransmits"]


def live_line(width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """The line of a run whose first megabyte was delivered at 1 s and whose fifth at 3 s."""
    from rich.console import Console

    monkeypatch.setenv("COLUMNS", str(width))
    display = LiveDisplay(Verdicts(as_json=False), on_stderr=False)
    drawn = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    clock = iter([0.0, 0.0, 1.0, 3.0])
    monkeypatch.setattr(
        "windtunnel.harness.cli.render.display.time.monotonic", lambda: next(clock, 3.0)
    )
    display.on_event(event("run"))
    display.on_event(event("phase", phase="traffic"))
    sizes = {"total_bytes": 12_000_000}
    display.on_event(event("progress", fraction=0.1, delivered_bytes=1_000_000, **sizes))
    faults = {"drop_count": 99, "retransmit_count": 98}
    display.on_event(event("progress", fraction=0.42, delivered_bytes=5_000_000, **sizes, **faults))
    drawn.print(display._progress.get_renderable())
    text: str = drawn.file.getvalue()  # type: ignore[attr-defined]
    return text


@pytest.mark.parametrize("width", [80, 160])
def test_live_line_shows_phase_bytes_counts_and_elapsed_time(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (line,) = live_line(width, monkeypatch).splitlines()
    parts = ("2/3 loss/x", "traffic", "5.0/12.0 MB", "99 dropped  98 retransmits", "0:00:0")
    assert [part for part in parts if part not in line] == []
    assert ("MB/s" in line) == (width == 160)


def test_a_narrow_terminal_cuts_the_names_and_not_the_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (line,) = live_line(66, monkeypatch).splitlines()
    assert "…" in line
    for part in ("5.0/12.0 MB", "99 dropped  98 retransmits", "0:00:0"):
        assert part in line


def test_the_clock_of_a_run_continues_while_it_is_judged() -> None:
    display = LiveDisplay(Verdicts(as_json=False), on_stderr=False)
    display.on_event(event("run"))
    display.on_event(event("progress", fraction=1.0, delivered_bytes=4, total_bytes=4))
    (task,) = display._progress.tasks
    assert not task.finished


def test_a_very_narrow_terminal_still_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = live_line(40, monkeypatch).splitlines()
    assert len(line) <= 40


def test_the_live_line_of_a_compilation_ends_with_the_first_run() -> None:
    display = LiveDisplay(Verdicts(as_json=False), on_stderr=False)
    display.on_event(event("compile", fraction=0.25, text="kernels compiled: 2 of about 8"))
    (task,) = display._progress.tasks
    assert (task.description, task.completed) == ("kernels compiled: 2 of about 8", 0.25)
    display.on_event(event("run"))
    (task,) = display._progress.tasks
    assert task.fields["run"] == "2/3 loss/x"


def test_live_verdict_replaces_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    display = LiveDisplay(Verdicts(as_json=False), on_stderr=False)
    display.on_event(event("run"))
    display.on_event(event("verdict", outcome="PASS", text="8 gates and [16] checks hold"))
    assert display._progress.tasks == []
    assert "PASS" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("out", "err", "as_json", "kind"),
    [
        (True, True, False, LiveDisplay),
        (False, True, True, LiveDisplay),
        (False, False, False, PlainDisplay),
        (True, True, True, PlainDisplay),
        (True, False, False, LiveDisplay),
    ],
)
def test_display_is_live_only_on_a_terminal(
    out: bool, err: bool, as_json: bool, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: out)
    monkeypatch.setattr("sys.stderr.isatty", lambda: err)
    assert type(choose(as_json)) is kind
