"""Reports of applications about their messages: reading them, and the findings."""

import os
import zlib

import pytest

from tests.unit.harness.verdict.checks.observed import test_observed_streams
from windtunnel.harness.artifact.run.manifest import LOG_LOST, ProcessExit
from windtunnel.harness.scenario.applications.application_case import ApplicationCase
from windtunnel.harness.verdict.checks.observed.observed_streams import observed_streams
from windtunnel.harness.verdict.checks.observed.reported_delivery import reported_notes
from windtunnel.harness.verdict.checks.observed.reported_messages import REPORTS_MAX
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import AtFault
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import judge

run = test_observed_streams.run
CHECK = "reported_once_in_order"


def lines(kind, *messages, stream="seen "):
    return "".join(f"WT {kind} {stream}{number} {crc}\n" for number, crc in messages)


def findings_of(run, sent, got, **logs):
    """Return the findings, given the logs of a sender at a, of a receiver at b, and of others."""
    applications = [("sender", "a", sent), ("receiver", "b", got)]
    applications += [(name, *each) for name, each in logs.items()]
    run.case = run.case.model_copy(
        update={
            "applications": tuple(
                ApplicationCase(id=name, host=host, command=("x",), stop_within_ns=1)
                for name, host, _ in applications
            )
        }
    )
    path = run.write()
    for name, host, text in applications:
        run.folder.host(host).application(name).log.write_text(text)
    return {each.name: each for each in observed_streams(Evidence(path))}


SENT = lines("SENT", (0, 10), (1, 11), (2, 12))


@pytest.mark.parametrize("stream", ["seen ", ""])
def test_equal_reports_pass_and_nothing_is_unknown(run, stream):
    sent = "hello\n" + SENT + "WT RTT 5\nxWT SENT seen 9 9\n"
    found = findings_of(run, sent, lines("GOT", (0, 10), (1, 11), (2, 12), stream=stream))
    assert found[CHECK].outcome is Outcome.PASS
    assert "3 messages of sender reached receiver, once and in order" in found[CHECK].text
    assert found["observed_streams"].text.endswith("nothing is unknown")
    assert "unknown for" not in judge(run.path).reason
    assert list(reported_notes(found.values())) == [f"seen: {found[CHECK].text}"]


@pytest.mark.timeout(60)
def test_a_log_that_is_a_link_or_a_fifo_reports_nothing(run, tmp_path):
    findings_of(run, SENT, lines("GOT", (0, 10), (1, 11), (2, 12)))
    log = run.folder.host("b").application("receiver").log
    log.rename(tmp_path / "elsewhere")
    log.symlink_to(tmp_path / "elsewhere")
    assert CHECK not in {each.name for each in observed_streams(Evidence(run.path))}
    log.unlink()
    os.mkfifo(log)
    assert CHECK not in {each.name for each in observed_streams(Evidence(run.path))}


def test_a_log_that_could_not_be_written_proves_no_loss(run):
    name, log = "b/application-receiver", "hosts/b/application-receiver.log"
    exit_ = ProcessExit(name, "application", 125, False, log, "", problem=LOG_LOST)
    run.manifest.processes.append(exit_)
    found = findings_of(run, SENT, lines("GOT", (0, 10)))[CHECK]
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.text.startswith(f"{log} is incomplete")


def test_without_reports_of_both_sides_the_delivery_is_unknown(run):
    found = findings_of(run, SENT, "")
    assert CHECK not in found
    assert "what the applications offered" in found["observed_streams"].text


@pytest.mark.parametrize(
    ("got", "message", "text"),
    [
        ([(0, 10), (0, 10), (1, 11)], 1, "reports message 0 again"),
        ([(0, 10), (1, 10), (2, 11)], 1, "reports message 0 again"),
        # A restarted application that numbers from 0 again.
        ([(0, 10), (0, 11)], 1, "reports message 0 with another checksum than was sent"),
        ([(0, 10), (2, 12)], 1, "has skipped it: it reports a later one"),
        ([(0, 10), (1, 12)], 1, "has skipped it: it reports a later one"),
        ([(0, 10), (1, 99)], 1, "reports another checksum than was sent"),
        ([(0, 10), (1, 11), (2, 12), (3, 12)], 3, "reports message 2 again"),
        ([(0, 10), (1, 11), (2, 12), (3, 99)], 3, "reports a message that was never sent"),
    ],
)
def test_the_first_wrong_message_is_named_with_its_position(run, got, message, text):
    found = findings_of(run, SENT, lines("GOT", *got))[CHECK]
    assert (found.outcome, found.message, found.at_fault) == (
        Outcome.FAIL,
        message,
        AtFault.APPLICATION,
    )
    assert text in found.text
    assert found.conclusive
    first = run.log.frames["message"].tolist().index(message)
    assert found.position == int(run.log.frames["position"][first])


def test_a_sender_that_reports_what_it_has_not_sent_is_to_blame(run):
    crcs = [zlib.crc32(run.messages[number][1]) for number in range(3)]
    sent = lines("SENT", *enumerate([77, crcs[0], 78, crcs[1], crcs[2]]))
    found = findings_of(run, sent, lines("GOT", (1, crcs[0]), (3, crcs[1]), (4, crcs[2])))[CHECK]
    assert (found.outcome, found.message) == (Outcome.FAIL, 0)
    text = "sender reports it as sent, but it is not in the stream, nor is 1 other of 5"
    assert text in found.text
    assert "receiver" not in found.text
    sent = lines("SENT", *enumerate([crcs[0], 77, crcs[1]]))
    found = findings_of(run, sent, lines("GOT", (0, crcs[0]), (2, crcs[1])))[CHECK]
    assert "is not in the stream; an `offer` with a negative result" in found.text
    # It was sent, but the receiver does not report it.
    sent = lines("SENT", *enumerate(crcs))
    found = findings_of(run, sent, lines("GOT", (0, crcs[0]), (2, crcs[2])))[CHECK]
    assert "receiver has skipped it" in found.text


@pytest.mark.parametrize(
    ("got", "failed_one", "is_reason"),
    [
        ([(0, 10), (2, 12)], "receiver", True),
        ([(0, 10)], "sender", True),
        # It has failed, and so it has not received the rest.
        ([(0, 10)], "receiver", False),
    ],
)
def test_the_wrong_message_is_the_reason_rather_than_the_exit_code(run, got, failed_one, is_reason):
    findings_of(run, SENT, lines("GOT", *got))
    host = "a" if failed_one == "sender" else "b"
    run.manifest.processes.append(
        ProcessExit(
            name=f"{host}/application-{failed_one}",
            role="application",
            exit_code=1,
            asked=False,
            log=f"hosts/{host}/application-{failed_one}.log",
            last_log_line="",
        )
    )
    run.write()
    verdict = judge(run.path)
    failures = [each.name for each in verdict.checks if each.outcome is Outcome.FAIL]
    assert "applications_ran" in failures
    expected = "reported_once_in_order (seen): message 1" if is_reason else "applications_ran"
    assert verdict.reason.startswith(expected)


def test_messages_that_are_missing_at_the_end_may_only_be_late(run):
    found = findings_of(run, SENT, lines("GOT", (0, 10)))[CHECK]
    assert (found.outcome, found.message, found.conclusive) == (Outcome.FAIL, 1, False)
    assert "misses 2 messages at the end" in found.text


@pytest.mark.parametrize(
    ("sent", "got", "text"),
    [
        (lines("SENT", (1, 11)), "WT GOT 1 11\n", "reports message 1 as sent, where message 0 was"),
        (SENT, "WT GOT seen 0\n", "line 1 of hosts/b/application-receiver.log: expected `WT GOT"),
        (SENT, "WT GOT other 0 10\nWT GOT 0 10\n", "line 1 of hosts/b/application-receiver.log"),
        (SENT, "WT GOT seen x 10\n", "expected `WT GOT [stream] number crc`"),
        (SENT, f"WT GOT {'9' * 19} 10\n", "expected `WT GOT [stream] number crc`"),
        (SENT, "WT GOT " + "1 " * 500 + "\n", "expected `WT GOT [stream] number crc`"),
    ],
)
def test_reports_that_cannot_be_used_prove_nothing(run, sent, got, text):
    found = findings_of(run, sent, got)[CHECK]
    assert (found.outcome, found.at_fault) == (Outcome.INCONCLUSIVE, AtFault.APPLICATION)
    assert text in found.text


def test_two_senders_cannot_be_distinguished(run):
    found = findings_of(run, SENT, "WT GOT 0 10\n", other=("a", SENT))[CHECK]
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "sender and other both report that they sent the stream" in found.text


def test_a_log_has_a_limited_number_of_reports(run, monkeypatch):
    module = "windtunnel.harness.verdict.checks.observed.reported_messages.REPORTS_MAX"
    assert REPORTS_MAX > 1000
    monkeypatch.setattr(module, 2)
    found = findings_of(run, SENT, "WT GOT 0 10\n")[CHECK]
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "application-sender.log has more than 2 reports" in found.text
