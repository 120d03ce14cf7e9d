"""An overloaded host excuses effects of slowness, but not wrong bytes or protocol violations."""

import copy
import re
from dataclasses import replace

import pytest

from tests.unit.harness.verdict.synthetic_run import A_TO_B, START_NS, SyntheticRun, make_run, nak
from windtunnel.harness.artifact.host.pressure import Pressure
from windtunnel.harness.artifact.middlebox.ledger import Ledger
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, failed
from windtunnel.harness.verdict.core.kind import SLOW_HOST_KINDS, STARVED_HOST_KINDS, Kind
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.gates.overload import NAME, host_was_not_overloaded
from windtunnel.harness.verdict.judge import judge

FAIL, INCONCLUSIVE, PASS = Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS
WAIT, THROTTLED, GAP, STOLEN = 2, 3, 4, 5
QUARTER_NS = 250_000_000


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def findings_of(run) -> list[Finding]:
    return host_was_not_overloaded(Evidence(run.write()))


def broken(run) -> list[Finding]:
    return [each for each in findings_of(run) if each.outcome is not PASS]


def add_wait(run, host: str = "b", wait_ns: int = 100_000_000) -> None:
    """Add one wait of a driver during the traffic."""
    for row in run.pressure[host][2:]:
        row[WAIT] += wait_ns


def test_hosts_with_enough_time_leave_the_gate_open(run):
    findings = findings_of(run)
    assert [(each.about, each.outcome) for each in findings] == [
        ("a", PASS),
        ("b", PASS),
        ("relay", PASS),
        ("machine", PASS),
    ]


@pytest.mark.parametrize(("wait_ns", "shut"), [(80_000_000, False), (100_000_000, True)])
def test_a_driver_that_waits_as_long_as_timing_checks_tolerate_closes_the_gate(run, wait_ns, shut):
    add_wait(run, wait_ns=wait_ns)
    findings = broken(run)
    assert [each.about for each in findings] == (["b"] if shut else [])
    if shut:
        assert re.search(r"waited 10\d ms for a processor between two samples", findings[0].text)
        assert "(limit 90 ms, exceeded in 1 of" in findings[0].text
        assert findings[0].evidence == ("hosts/b/pressure.json",)


@pytest.mark.parametrize(("stolen_ns", "shut"), [(90_000_000, False), (100_000_000, True)])
def test_a_processor_that_was_stolen_for_a_while_closes_the_gate(run, stolen_ns, shut):
    for row in run.pressure["b"][2:]:
        row[STOLEN] += stolen_ns
    findings = broken(run)
    assert [each.about for each in findings] == (["b"] if shut else [])
    if shut:
        assert "one processor's steal time was 100 ms between" in findings[0].text


def test_a_wait_before_the_traffic_does_not_matter(run):
    for row in run.pressure["a"]:
        row[WAIT] += QUARTER_NS
    run.pressure["a"].insert(0, [START_NS - 2 * QUARTER_NS, 0, 0, -1, 90_000_000, 0])
    assert broken(run) == []


@pytest.mark.parametrize(("gap_ns", "shut"), [(50_000_000, False), (50_000_001, True)])
def test_a_sampler_that_is_not_scheduled_closes_the_gate(run, gap_ns, shut):
    run.pressure["a"][2][GAP] = gap_ns
    findings = broken(run)
    assert bool(findings) == shut
    if shut:
        assert "the sampler did not run for 50 ms (limit 50 ms, " in findings[0].text


@pytest.mark.parametrize(("share", "shut"), [(0.009, False), (0.02, True)])
def test_a_quota_closes_the_gate(run, share, shut):
    for number, row in enumerate(run.pressure["a"]):
        row[THROTTLED] = int(number * share * QUARTER_NS)
    findings = broken(run)
    assert bool(findings) == shut
    if shut:
        assert "a CPU quota throttled the driver for 2.0% of the time" in findings[0].text


@pytest.mark.parametrize(("lag_ns", "shut"), [(5_000_000, False), (5_000_001, True)])
def test_a_slow_relay_closes_the_gate(run, lag_ns, shut):
    run.links[A_TO_B].lag_ns = {"p50": 10, "p99": lag_ns, "max": 10**9}
    assert [each.about for each in broken(run)] == (["relay"] if shut else [])


@pytest.mark.parametrize(("lag_ns", "shut"), [(10**9, False), (10**9 + 1, True)])
def test_a_relay_that_stalled_excuses_timeouts(run, lag_ns, shut):
    run.links[A_TO_B].lag_ns = {"p50": 10, "p99": 20, "max": lag_ns}
    findings = broken(run)
    assert bool(findings) == shut
    if shut:
        assert "stalled: its maximum forwarding delay was 1.00 s (limit 1.00 s)" in findings[0].text
        assert findings[0].excuses_kinds == STARVED_HOST_KINDS


@pytest.mark.parametrize(("ticks", "shut"), [(1, False), (9, True)])
def test_stolen_time_closes_the_gate(run, ticks, shut):
    run.manifest.host_facts["steal_ticks"] = ticks
    assert [each.about for each in broken(run)] == (["machine"] if shut else [])


@pytest.mark.parametrize("name", ["hosts/a/pressure.json", "ledger.json", "run.json"])
def test_without_evidence_the_gate_is_closed_and_excuses_the_same(run, name):
    path = run.write()
    (path / name).unlink()
    findings = host_was_not_overloaded(Evidence(path))
    assert findings[0].outcome is INCONCLUSIVE
    assert findings[0].excuses_kinds == SLOW_HOST_KINDS


def test_rows_of_another_time_are_no_evidence(run):
    run.pressure["b"] = run.pressure["b"][:1]
    assert "has fewer than two samples of the traffic phase" in broken(run)[0].text
    run.manifest.phases = []
    assert "lists no phase" in broken(run)[0].text


def starve(run, quarters: int, share: float = 0.6) -> None:
    """Extend the run to 30 seconds, in which a driver waits during some quarter seconds."""
    for phase in run.manifest.phases:
        phase.ended_ns = phase.started_ns + 120 * QUARTER_NS
    for host in run.pressure:
        rows = []
        for number in range(130):
            waited = min(max(0, number - 20), quarters) if host == "b" else 0
            row = list(run.pressure[host][0])
            row[0], row[WAIT] = START_NS + number * QUARTER_NS, int(waited * share * QUARTER_NS)
            rows.append(row)
        run.pressure[host] = rows


@pytest.mark.parametrize(
    ("quarters", "share", "phase", "shut"),
    [
        (15, 0.6, "start", False),
        (20, 0.4, "start", False),
        (20, 0.6, "start", True),
        (20, 0.6, "traffic", True),
    ],
)
def test_a_host_is_starved_if_its_driver_waits_for_five_seconds(run, quarters, share, phase, shut):
    starve(run, quarters, share)
    run.manifest.phases[0].name = phase
    findings = broken(run)
    assert bool(findings) == shut
    if shut:
        assert findings[0].excuses_kinds == STARVED_HOST_KINDS
        assert "the driver waited for a processor for 60% of 5 s (limit 50%)" in findings[0].text


@pytest.mark.parametrize(("gap_ns", "starved"), [(1_000_000_000, False), (1_000_000_001, True)])
def test_a_host_without_a_turn_for_a_second_starves(run, gap_ns, starved):
    run.pressure["a"][2][GAP] = gap_ns
    kinds = STARVED_HOST_KINDS if starved else SLOW_HOST_KINDS
    assert [each.excuses_kinds for each in broken(run)] == [kinds]


@pytest.mark.parametrize(
    ("code", "pressing", "outcome"),
    [
        (124, None, FAIL),
        (124, add_wait, FAIL),
        (124, starve, INCONCLUSIVE),
        (1, starve, FAIL),
        (-11, starve, FAIL),
    ],
)
def test_a_timeout_fails_a_run_unless_the_host_starved(run, code, pressing, outcome):
    failed = next(each for each in run.manifest.processes if each.role == "publisher")
    failed.exit_code, failed.last_log_line = code, "no answer within 2000 ms"
    run.manifest.complete = False
    if pressing is starve:
        starve(run, 20)
    elif pressing is not None:
        pressing(run)
    verdict = judge(run.write())
    assert verdict.outcome is outcome, verdict.reason


@pytest.mark.parametrize(("role", "outcome"), [("archive", INCONCLUSIVE), ("driver", FAIL)])
def test_timeouts_of_an_archive_are_excused_and_those_of_a_driver_are_not(run, role, outcome):
    driver = next(each for each in run.manifest.processes if each.role == "driver")
    left = replace(driver, name=f"b/{role}", role=role, exit_code=124, asked=False)
    run.manifest.processes.append(left)
    run.manifest.complete = False
    assert judge(run.write()).outcome is FAIL
    starve(run, 20)
    assert judge(run.write()).outcome is outcome


def test_a_run_without_violations_passes_on_an_overloaded_host_and_the_gate_is_shown(run):
    add_wait(run)
    verdict = judge(run.write())
    assert verdict.outcome is PASS
    shut = [each for each in verdict.gates if each.outcome is not PASS]
    assert [(each.name, each.about) for each in shut] == [(NAME, "b")]


@pytest.mark.parametrize("overloaded", [False, True])
def test_a_timing_violation_fails_a_run_unless_the_host_was_overloaded(run, overloaded):
    if overloaded:
        add_wait(run)
    add_early_naks(run)
    verdict = judge(run.path)
    assert verdict.outcome is (INCONCLUSIVE if overloaded else FAIL), verdict
    if overloaded:
        assert "inconclusive because gate host_was_not_overloaded failed" in verdict.reason
        assert verdict.reason.endswith("(at fault: the machine)")
    assert verdict.at_fault == ("machine" if overloaded else "driver")


@pytest.mark.parametrize("overloaded", [False, True])
def test_a_protocol_violation_fails_a_run_on_any_host(run, overloaded):
    packet = [each for each in run.packets["b"] if each.kind == "NAK"][2]
    packet.payload = nak(run.decisions[2][12], 1 << 14)
    keep_only(run, "naks_only_for_gaps")
    if overloaded:
        add_wait(run)
    assert judge(run.write()).outcome is FAIL


@pytest.mark.parametrize("check", ["naks_and_retransmits_agree", "counters_agree_with_packets"])
@pytest.mark.parametrize(
    ("counters", "more", "outcome"),
    [
        (("rcv-naks-sent", "b/5"), 1, FAIL),
        (("rcv-naks-sent", "b/5"), -1, FAIL),
        (("snd-naks-received", "a/6"), 1, FAIL),
        (("snd-naks-received", "a/6"), -30, INCONCLUSIVE),
    ],
)
def test_an_overloaded_host_explains_what_was_not_counted_and_no_other_mismatch(
    run, check, counters, more, outcome
):
    for name in counters:
        run.values[name] += more
    keep_only(run, check)
    add_wait(run)
    assert judge(run.write()).outcome is outcome


@pytest.mark.parametrize("overloaded", [False, True])
def test_a_wrong_byte_fails_a_run_on_any_host(run, overloaded):
    position, data = run.messages[3]
    run.messages[3] = (position, bytes([data[0] ^ 1]) + data[1:])
    if overloaded:
        add_wait(run)
    assert judge(run.write()).outcome is FAIL


@pytest.mark.parametrize("kind", Kind)
def test_what_an_overloaded_host_may_excuse(run, kind):
    add_wait(run)
    gate = broken(run)[0]
    may = kind not in (Kind.PROTOCOL, Kind.TIMEOUT)
    assert gate.may_excuse(failed("check", "text", kind=kind)) == may
    assert not gate.may_excuse(failed("check", "text", kind=kind, conclusive=True))


def keep_only(run, name: str) -> None:
    checks = tuple(each for each in run.case.expect if each.name == name)
    run.case = run.case.model_copy(update={"expect": checks})


def add_early_naks(run) -> None:
    """Add too many NAKs for one gap, which a slow host may cause, and write the run."""
    asked = [each for each in run.packets["b"] if each.kind == "NAK"][2]
    for number in range(80):
        run.packets["b"].append(replace(asked, time_ns=asked.time_ns + number))
    keep_only(run, "naks_paced")
    run.write()
    make_ledger_agree(run)


def make_ledger_agree(run) -> None:
    """Adjust the ledger and the other capture for packets added at b."""
    ours = [each for each in run.packets["b"] if each.source == "b"]
    account = run.links["b->a"]
    more = len(ours) - account.datagrams_in
    account.datagrams_in += more
    account.datagrams_dropped += more
    account.frames["NAK"].received += more
    account.frames["NAK"].dropped += more
    Ledger(run.links).write(run.folder.ledger)


def test_rows_are_read_back_as_written(run):
    path = run.write()
    stored = Pressure.read(path / "hosts/a/pressure.json")
    assert stored.rows.tolist() == run.pressure["a"]


def test_a_wait_that_is_reported_at_its_end_counts_for_the_time_before(run):
    """The kernel counts a wait when the driver runs again, which may be after the traffic."""
    starve(run, 0)
    (traffic,) = (each for each in run.manifest.phases if each.name == "traffic")
    stop = copy.copy(traffic)
    stop.name = "stop"
    run.manifest.phases.append(stop)
    traffic.ended_ns = START_NS + 60 * QUARTER_NS
    for row in run.pressure["b"][70:]:
        row[WAIT] += 30 * QUARTER_NS
    assert [each.excuses_kinds for each in broken(run)] == [STARVED_HOST_KINDS]


def test_a_passing_run_names_every_advisory_gate_with_its_hosts(run):
    run.pressure["a"][2][GAP] = 62_000_000
    for row in run.pressure["b"][2:]:
        row[STOLEN] += 100_000_000
    verdict = judge(run.write())
    assert verdict.outcome is Outcome.PASS
    assert "(2 advisory gates failed: host_was_not_overloaded (a, b))" in verdict.reason
    texts = [each.text for each in verdict.gates if each.advisory]
    assert texts == [
        "the sampler did not run for 62 ms (limit 50 ms, sampling interval 5 ms)",
        "one processor's steal time was 100 ms between two samples (limit 90 ms)",
    ]
