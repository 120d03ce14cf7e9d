"""Live and plain progress."""

import io
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
        "[2/3] loss/x seed 7: 25 %",
        "[2/3] loss/x seed 7: 75 %",
    ]


def test_rate_counts_from_the_first_delivered_bytes() -> None:
    rate = Rate()
    assert rate.megabytes_per_s(0, 10.0) is None
    assert rate.megabytes_per_s(1_000_000, 11.0) is None
    assert rate.megabytes_per_s(1_000_000, 11.0) is None
    assert rate.megabytes_per_s(5_000_000, 13.0) == pytest.approx(2.0)


def test_fault_counts_omits_zeros() -> None:
    assert fault_counts(event("progress")) == ""
    assert fault_counts(event("progress", drop_count=12, nak_count=3)) == "12 drops  3 NAKs"


def test_live_line_shows_phase_percent_rate_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    display = LiveDisplay(Verdicts(as_json=False), on_stderr=False)
    drawn = Console(file=io.StringIO(), force_terminal=True, width=160, color_system=None)
    clock = iter([0.0, 0.0, 1.0, 3.0])
    monkeypatch.setattr(
        "windtunnel.harness.cli.render.display.time.monotonic", lambda: next(clock, 3.0)
    )
    display.on_event(event("run"))
    display.on_event(event("phase", phase="traffic"))
    display.on_event(event("progress", fraction=0.1, delivered_bytes=1_000_000))
    display.on_event(
        event("progress", fraction=0.42, delivered_bytes=5_000_000, drop_count=99, nak_count=98)
    )
    drawn.print(display._progress.get_renderable())
    line = drawn.file.getvalue()  # type: ignore[attr-defined]
    for part in ("2/3 loss/x", "traffic", "42%", "MB/s", "99 drops  98 NAKs"):
        assert part in line


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
