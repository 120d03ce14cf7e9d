"""Events of hosts: valid and invalid files, the resolved case, and its explanation."""

import pytest

from tests.unit.harness.scenario.test_scenario_loader import GOOD
from windtunnel.driver.logbuffer.tail import framed_length
from windtunnel.harness.scenario.explain.explain import explain
from windtunnel.harness.scenario.loader import ScenarioError, parse_scenario
from windtunnel.harness.scenario.resolved.case import Payload
from windtunnel.harness.scenario.resolved.resolution import resolve
from windtunnel.harness.scenario.schema.host_event import ALL_ROLES, EventCase, TimeoutsCase


def text_of(event, *, rejoins=False, more=""):
    content = "content: {bytes: 1MiB, message: {from: 1B, to: max}}"
    text = GOOD
    if rejoins:
        text = GOOD.replace(content, f"{content}\n    rejoins: true")
        text = text.replace("delivered_once", "delivered_in_parts")
    return text.replace("expect:", f"events:\n  - {event}\n{more}expect:")


def case_of(event, **options):
    return resolve(
        parse_scenario(text_of(event, **options), "made.yaml"),
        seed=1,
        fidelity="netns",
        addresses={"a": "10.64.0.3", "b": "10.64.0.19"},
        payload=Payload(path="payload.bin", sha256="0" * 64, length_bytes=1),
    )


PAUSE = "{id: freeze, whom: {host: b, process: %s}, when: {%s}, act: {pause: %s}}"
KILL = "{id: crash, whom: {host: %s, process: %s}, when: {after: 1s}, act: {kill: {%s}}}"


def test_a_pause_is_in_the_case():
    case = case_of(PAUSE % ("driver", "delivered: 512KiB", "800ms"))
    assert case.events == (
        EventCase(
            id="freeze", host="b", process="driver", trigger="delivered", at=512 << 10,
            action="pause", lasts_ns=800_000_000,
        ),
    )  # fmt: skip
    assert "freeze: the driver on b paused for 800ms, when 512KiB has been delivered" in explain(
        case
    )


def test_a_kill_is_in_the_case_and_starts_a_session():
    event = KILL % ("a", "publisher", "restart_after: 2s")
    case = case_of(event, rejoins=True, more="timeouts: {client_liveness: 3s, driver: 4s}\n")
    assert case.events[0].action == "kill"
    assert case.sessions_of(case.traffic[0]) == 2
    assert "the publisher on a killed and restarted after 2s, 1s after the first" in explain(case)
    assert case.timeouts == TimeoutsCase(client_liveness_ns=3 * 10**9, driver_ns=4 * 10**9)
    assert case.timeouts.variables == {
        "AERON_CLIENT_LIVENESS_TIMEOUT": "3000000000ns",
        "AERON_DRIVER_TIMEOUT": "4000",
    }


def held_back(**changes):
    """Return a case with an event of a host and a changed stream."""
    case = case_of(PAUSE % ("driver", "delivered: 512KiB", "800ms"))
    return case.model_copy(update={"traffic": (case.traffic[0].model_copy(update=changes),)})


@pytest.mark.parametrize("longest_bytes", [1, 1375, 1376, 1377, 2752, 8000])
@pytest.mark.parametrize("beyond_bytes", [0, 32])
def test_explain_warns_if_padding_can_move_a_sender_beyond_the_reach_of_a_stalled_reader(
    longest_bytes, beyond_bytes
):
    padding = framed_length(longest_bytes, 1376)
    case = held_back(
        mtu=1408,
        term_length=65536,
        longest_bytes=longest_bytes,
        receiver_window_bytes=32768 - padding + beyond_bytes,
    )
    assert ("may be considered dead" in explain(case)) is (beyond_bytes > 0)
    assert "may be considered dead" not in explain(case.model_copy(update={"events": ()}))


@pytest.mark.parametrize(("term_length", "output"), [(256 * 1024, True), (512 * 1024, False)])
def test_the_default_window_of_a_receiver_is_128_kib(term_length, output):
    case = held_back(term_length=term_length, receiver_window_bytes=None)
    assert ("may be considered dead" in explain(case)) is output


def test_there_are_no_events_by_default():
    case = resolve(
        parse_scenario(GOOD, "made.yaml"), seed=1, fidelity="netns",
        addresses={"a": "10.64.0.3", "b": "10.64.0.19"},
        payload=Payload(path="payload.bin", sha256="0" * 64, length_bytes=1),
    )  # fmt: skip
    assert case.events == ()
    assert case.timeouts.variables == {}
    assert case.sessions_of(case.traffic[0]) == 1


def test_all_on_a_host_are_driver_and_applications():
    case = case_of(PAUSE % ("all", "after: 0s", "1ms"))
    assert case.events[0].roles == ALL_ROLES
    assert {"driver", "publisher", "subscriber", "archive"} < set(ALL_ROLES)


@pytest.mark.parametrize(
    ("event", "rejoins", "fault"),
    [
        (
            PAUSE % ("driver", "delivered: 1MiB", "1ms"),
            False,
            "expected less than the total content",
        ),
        (PAUSE % ("driver", "after: 19s", "1s"), False, "occurs or ends after budget.wall (20s)"),
        (PAUSE % ("driver", "", "1s"), False, "exactly one of after, published, delivered"),
        (
            PAUSE % ("driver", "after: 1s, published: 1KiB", "1s"),
            False,
            "exactly one of after, published, delivered",
        ),
        (PAUSE % ("publisher", "after: 1s", "1s"), False, "host b has no publisher"),
        (PAUSE % ("relay", "after: 1s", "1s"), False, "expected '"),
        (PAUSE % ("driver", "after: 1s", "61s"), False, "at most 60000000000"),
        (PAUSE % ("driver", "after: 1s", "10s"), False, "images are closed after 10s"),
        (KILL % ("b", "driver", "restart_after: 1s"), False, "needs `rejoins: true`"),
        (KILL % ("c", "driver", "restart_after: 1s"), True, "found 'c'"),
        (KILL % ("a", "driver", "restart_after: 1s"), True, "a publication ends with its driver"),
        (KILL % ("b", "subscriber", "restart_after: 1s"), True, "loses its record of messages"),
        (KILL % ("b", "all", "restart_after: 1s"), True, "loses its record of messages"),
        (KILL % ("b", "driver", ""), True, "this key is missing"),
        (
            "{id: x, whom: {host: b}, when: {after: 1s}, act: {}}",
            True,
            "expected exactly one of pause, kill",
        ),
    ],
)
def test_an_invalid_event_is_refused(event, rejoins, fault):
    with pytest.raises(ScenarioError) as raised:
        parse_scenario(text_of(event, rejoins=rejoins), "made.yaml")
    (found,) = raised.value.errors
    assert "events[0]" in found
    assert fault in found


def test_a_pause_as_long_as_the_image_timeout_needs_a_stream_that_rejoins():
    short = "timeouts: {image_liveness: 2s}\n"
    event = PAUSE % ("driver", "after: 1s", "2s")
    case_of(event)
    with pytest.raises(ScenarioError, match="images are closed after 2s"):
        case_of(event, more=short)
    case_of(event, more=short, rejoins=True)


def test_events_have_unique_names():
    event = PAUSE % ("driver", "after: 1s", "1s")
    with pytest.raises(ScenarioError, match=r"events\[1\].id: 'freeze' occurs twice"):
        case_of(f"{event}\n  - {event}")
