"""`explain` computes what windows, links and paces allow, and which timeouts are exceeded.

Each figure is compared with a plain count of messages and packets.
"""

import re

import pytest

from tests.unit.harness.scenario.schema.test_host_event import PAUSE
from tests.unit.harness.scenario.test_scenario_loader import GOOD
from windtunnel.harness.installation import SCENARIOS
from windtunnel.harness.scenario.explain.explain import explain
from windtunnel.harness.scenario.explain.rate_limits import PACER_SLACK_NS, USABLE_SHARE
from windtunnel.harness.scenario.loader import parse_scenario
from windtunnel.harness.scenario.resolved.case import Payload
from windtunnel.harness.scenario.resolved.resolution import resolve
from windtunnel.harness.verdict.views.stalls import window_limit
from windtunnel.harness.workload.pacer import SLACK_NS

RULES = GOOD[GOOD.index("faults:") : GOOD.index("expect:")]
PLAIN = GOOD.replace(RULES, "").replace("term-length=64k", "term-length=1m")


def case_of(text):
    hosts = ("a", "b", "c", "d")
    return resolve(
        parse_scenario(text, "made.yaml"), seed=1, fidelity="netns",
        addresses={host: f"10.64.0.{3 + 16 * index}" for index, host in enumerate(hosts)},
        payload=Payload(path="payload.bin", sha256="0" * 64, length_bytes=1),
    )  # fmt: skip


def lines_of(text):
    return [line.strip() for line in explain(case_of(text)).splitlines()]


def line_of(text, pattern):
    (line,) = [line for line in lines_of(text) if re.search(pattern, line)]
    return line


def made(
    message="from: 1000B, to: 1000B", pace="", impairments="both: {delay: {mean: 20ms}}", more=""
):
    text = PLAIN.replace("from: 1B, to: max}", f"{message}}}{pace}")
    text = text.replace("backend: relay", f"backend: relay, impairments: {{{impairments}}}")
    return text.replace(
        '"aeron:udp?endpoint=${b}:24325"', f'"aeron:udp?endpoint=${{b}}:24325{more}"'
    )


def frames(length, mtu=1408):
    """Return the lengths of the frames of a message, computed one by one."""
    found = []
    while length:
        part = min(length, mtu - 32)
        length -= part
        span = part + 32
        while span % 32:
            span += 1
        found.append(span)
    return found


def messages(total, length):
    found = []
    while total:
        found.append(min(length, total))
        total -= found[-1]
    return found


def earliest_s(total, length, window, round_trip_s):
    """Return the time of the last byte's arrival if every round trip transfers one whole window."""
    left = sum(span for each in messages(total, length) for span in frames(each))
    now_s = 0.0
    while left > window:
        left -= window
        now_s += round_trip_s
    return now_s + round_trip_s / 2


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("length", [1, 100, 1000, 1376, 1377, 2752, 5000])
def test_fragments_and_overhead_of_a_message(length):
    spans = [frames(each) for each in messages(1 << 20, length)]
    added = sum(map(sum, spans)) / (1 << 20) - 1
    count = len(spans[0])
    expected = "1 frame" if count == 1 else f"{count} frames"
    line = line_of(made(f"from: {length}B, to: {length}B"), "^a message is")
    found = re.fullmatch(
        r"a message is (\d+ frames?) of at most 1376 payload bytes; headers and alignment add "
        r"([\d.]+)%(, padding at the ends of terms [\d.]+%)?",
        line,
    )
    assert found is not None
    assert found[1] == expected
    assert float(found[2]) == pytest.approx(100 * added, abs=0.06 + 100 * added / 500)


def test_messages_of_several_lengths_have_a_range_of_fragments():
    line = line_of(made("from: 100B, to: 4000B"), "^a message is")
    assert line.startswith("a message is 1 to 3 frames of at most 1376 payload bytes")


@pytest.mark.parametrize(
    ("more", "window"),
    [
        ("", 128 << 10),
        ("|rcv-wnd=64k", 64 << 10),
        ("|rcv-wnd=1m|so-rcvbuf=2m", 512 << 10),  # Limited to half of the term.
    ],
)
@pytest.mark.parametrize("length", [1000, 1377])
def test_the_window_limits_the_rate_to_one_window_per_round_trip(more, window, length):
    text = made(f"from: {length}B, to: {length}B", more=more)
    line = line_of(text, "^round trip .*:.* window ")
    share = length / sum(frames(length))
    assert line == (
        f"round trip 40ms: the window of {window:,} bytes allows "
        f"{window * share / 0.040 / 1e6:.2f} MB/s"
    )
    at_s = earliest_s(1 << 20, length, window, 0.040)
    assert line_of(text, "^delivered after").startswith(
        f"delivered after {at_s:.2f} s at the earliest (window: at most "
    )


def test_the_bytes_in_flight_are_compared_with_the_window():
    text = made(pace=", pace: {rate: 4MiB/s}")
    packets = (4 << 20) / 1000 * 0.040  # sent during a round trip
    needed = packets * sum(frames(1000))
    assert line_of(text, "^round trip .*:.* window ") == (
        f"round trip 40ms: 4MiB/s needs {needed:,.0f} bytes in flight, the window of 131,072 "
        f"bytes allows {131072 / 1056 * 1000 / 0.04 / 1e6:.2f} MB/s"
    )


FEED = made("from: 256B, to: 256B", pace=", pace: {rate: 5000KiB/s}").replace(
    "bytes: 1MiB", "bytes: 8MiB"
)
FEED = FEED.replace("mean: 20ms", "mean: 30ms")


@pytest.mark.parametrize(
    ("window", "term", "expected"),
    [
        ("128k", "16m", "(rcv-wnd=450k)"),
        ("352k", "16m", "(rcv-wnd=450k)"),
        ("384k", "16m", "(rcv-wnd=450k)"),
        ("449k", "16m", "(rcv-wnd=450k)"),
        ("450k", "16m", ""),
        ("512k", "16m", ""),
        # The window is limited to half of the term.
        ("512k", "512k", "(rcv-wnd=450k, term-length=1m)"),
    ],
)
def test_the_window_that_prevents_stalls_is_four_thirds_of_what_is_in_flight(
    window, term, expected
):
    text = FEED.replace('24325"\n    content', f'24325|rcv-wnd={window}|so-rcvbuf=2m"\n    content')
    found = lines_of(text.replace("term-length=1m", f"term-length={term}"))
    in_flight = 20_000 * 288 * 60 // 1000
    line = f"without losses, a window of {in_flight * 4 // 3:,} bytes {expected} prevents stalls: "
    line += "a status message acknowledges a quarter of a window at a time"
    assert [each for each in found if "prevents stalls" in each] == ([line] if expected else [])


def test_no_window_is_proposed_for_a_stream_without_a_rate():
    assert not [line for line in lines_of(made()) if "prevents stalls" in line]


def test_the_usable_share_of_a_window_is_that_of_the_verdict():
    assert USABLE_SHARE == window_limit.USABLE_SHARE


def test_a_stream_that_cannot_meet_its_budget_is_named():
    text = made(impairments="both: {delay: {mean: 5s}}").replace("bytes: 1MiB", "bytes: 512KiB")
    at_s = earliest_s(512 << 10, 1000, 128 << 10, 10.0)
    assert at_s > 20
    line = line_of(text, "^delivered after")
    assert line.startswith(f"delivered after {at_s:.2f} s at the earliest (window: ")
    assert line.endswith("over the budget of 20s")
    within = text.replace("wall: 20s", "wall: 60s")
    assert "budget" not in line_of(within, "^delivered after")


def test_jitter_shortens_the_round_trip_and_reordering_removes_it():
    jitter = made(impairments="both: {delay: {mean: 20ms, jitter: 5ms}}")
    assert re.match(r"round trip 3000\d{4}ns: ", line_of(jitter, "^round trip .*:.* window "))
    normal = made(impairments="both: {delay: {mean: 20ms, jitter: 5ms, distribution: normal}}")
    (trip,) = re.findall(r"round trip (\d+)ns: ", line_of(normal, "^round trip .*:.* window "))
    assert 0 <= int(trip) < 10_000_000
    skipping = made(impairments="both: {delay: {mean: 20ms}, reorder: {share: 1%}}")
    assert not [
        line for line in lines_of(skipping) if re.match("round trip.* window|delivered", line)
    ]


def test_a_link_without_delay_has_no_window_limit():
    assert not [
        line for line in lines_of(made(impairments="a->b: {loss: 1%}")) if "window of" in line
    ]


def test_the_rate_of_a_link_counts_headers():
    text = made(impairments="a->b: {rate: 2Mbit/s}")
    framed = sum(sum(frames(each)) for each in messages(1 << 20, 1000))
    bits = 8 * (framed + framed / 1408 * 28)
    found = re.match(r"delivered after ([\d.]+) s at the earliest \(link: at most ([\d.]+) kB/s\)",
                     line_of(text, "^delivered after"))  # fmt: skip
    assert found is not None
    assert float(found[1]) == pytest.approx(bits / 2e6, abs=0.011)
    assert float(found[2]) == pytest.approx((1 << 20) / (bits / 2e6) / 1e3, abs=0.0051)


@pytest.mark.parametrize("cause", ["pace", "reader"])
def test_a_pace_is_the_limit_if_it_is_the_slowest(cause):
    slow = "{rate: 100KiB/s}"
    text = made(pace=f", pace: {slow}") if cause == "pace" else made()
    if cause == "reader":
        text = text.replace("faults:", "").replace("expect:", f"    consume: {slow}\nexpect:", 1)
    sent, now_s = 0, -0.002
    for length in messages(1 << 20, 1000)[:-1]:
        sent += length
        now_s += length / (100 << 10)
    line = line_of(text, "^delivered after")
    assert line.startswith(f"delivered after {now_s:.2f} s at the earliest ({cause}: at most 102.")


def test_the_slack_of_the_pacer_is_the_one_that_limits_assume():
    assert PACER_SLACK_NS == SLACK_NS


GROUP = (
    PLAIN.replace("hosts: [a, b]", "hosts: [a, b, c, d]")
    .replace(
        "link: {between: [a, b], backend: relay}",
        "links: [{between: [a, b], impairments: {both: {delay: {mean: 1ms}}}}, "
        "{between: [a, c], impairments: {both: {delay: {mean: 20ms}}}}, "
        "{between: [a, d], impairments: {both: {delay: {mean: 20ms}}}}]",
    )
    .replace("to: b", "to: [b, c, d]")
    .replace("from: 1B, to: max", "from: 1000B, to: 1000B")
    .replace("endpoint=${b}:24325|term", "control-mode=dynamic|control=${a}:24324%s|term")
    .replace(
        "endpoint=${b}:24325",
        "endpoint=${self}:24325|control=${a}:24324|control-mode=dynamic",
    )
)


@pytest.mark.parametrize(
    ("control", "line", "round_trip_s"),
    [
        ("|fc=max", "fc=max follows the fastest receiver and waits for no other one", 0.002),
        ("|fc=min", "fc=min follows the slowest receiver not silent for 5s", 0.002),
        (
            "|fc=min,g:/3,t:2s",
            "fc=min needs 3 of these receivers at all times, follows the slowest receiver not "
            "silent for 2s",
            0.040,
        ),
    ],
)
def test_a_group_is_as_fast_as_the_receivers_that_flow_control_waits_for(
    control, line, round_trip_s
):
    text = GROUP.replace("%s", control)
    assert line_of(text, "^flow control") == f"flow control: {line}"
    trips = [each for each in lines_of(text) if "round trip" in each and "window" in each]
    assert [each.split(":")[0] for each in trips] == ["b", "c, d"]
    at_s = earliest_s(1 << 20, 1000, 128 << 10, round_trip_s)
    assert line_of(text, "^delivered").startswith(f"delivered after {at_s:.2f} s at the earliest")


def test_tagged_flow_control_names_the_receivers_with_the_tag():
    untagged = GROUP.replace("%s", "|fc=tagged,g:7")
    assert line_of(untagged, "^flow control") == (
        "flow control: no receiver has the tag of fc=tagged,g:7"
    )
    text = GROUP.replace("%s", "|fc=tagged,g:7/1")
    own = '\n    receives: {c: "aeron:udp?endpoint=${self}:24325|control=${a}:24324|'
    own += 'control-mode=dynamic|gtag=7"}\n    content'
    tagged = text.replace("\n    content", own)
    assert line_of(tagged, "^flow control") == (
        "flow control: fc=tagged needs 1 of these receivers at all times, follows the slowest of c "
        "not silent for 5s"
    )
    at_s = earliest_s(1 << 20, 1000, 128 << 10, 0.040)
    assert line_of(tagged, "^delivered").startswith(f"delivered after {at_s:.2f} s")


def event(process, host, lasts, more="", rejoins=True, act=None):
    text = (PAUSE % (process, "after: 1s", lasts)).replace("host: b", f"host: {host}")
    if act:
        text = text.replace(f"pause: {lasts}", act)
    text = PLAIN.replace("wall: 20s", "wall: 60s").replace(
        "expect:", f"events:\n  - {text}\n{more}expect:"
    )
    if rejoins:
        text = text.replace("    content", "    rejoins: true\n    content")
    return text.replace("- delivered_once", "- delivered_in_parts")


CONNECTION = "connection timeout of 5s: one is disconnected at a until a status message arrives"
IMAGE = (
    "image liveness timeout of 10s: b closes the image; a new one starts at the sender's position"
)
CLOSED = "client liveness timeout of 10s: the driver on %s closes the %s's client"
DEAD = "driver timeout of 10s: the clients on b close"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            event("driver", "b", "3s"),
            [
                "shorter than the connection timeout of 5s, the image liveness timeout of 10s, "
                "the driver timeout of 10s"
            ],
        ),
        (
            event("driver", "b", "4700ms"),
            [
                f"may exceed the {CONNECTION}",
                "shorter than the image liveness timeout of 10s, the driver timeout of 10s",
            ],
        ),
        (
            event("driver", "b", "9s"),
            [
                f"exceeds the {CONNECTION}",
                f"may exceed the {DEAD}",
                "shorter than the image liveness timeout of 10s",
            ],
        ),
        (
            event("driver", "b", "12s"),
            [f"exceeds the {CONNECTION}", f"exceeds the {IMAGE}", f"exceeds the {DEAD}"],
        ),
        (event("subscriber", "b", "3s"), ["shorter than the client liveness timeout of 10s"]),
        (event("subscriber", "b", "12s"), [f"exceeds the {CLOSED % ('b', 'subscriber')}"]),
        (event("publisher", "a", "12s"), [f"exceeds the {CLOSED % ('a', 'publisher')}"]),
        (
            event("subscriber", "b", "3s", "timeouts: {client_liveness: 2s}\n"),
            ["exceeds the " + (CLOSED % ("b", "subscriber")).replace("10s", "2s")],
        ),
        (
            event("driver", "b", "3s", act="kill: {restart_after: 3s}"),
            [
                f"exceeds the {CONNECTION}",
                "the clients on b notice after the driver timeout of 10s",
            ],
        ),
        (
            event("driver", "b", "3s", "timeouts: {driver: 4s}\n", act="kill: {restart_after: 3s}"),
            [
                "shorter than the connection timeout of 5s",
                "the clients on b notice after the driver timeout of 4s",
            ],
        ),
    ],
)
def test_the_timeouts_that_an_event_exceeds_are_named(text, lines):
    found = lines_of(text)
    at = next(i for i, line in enumerate(found) if re.match(r"\w+: the \w+ on [ab] ", line))
    assert found[at + 1 : at + 1 + len(lines)] == lines
    assert [line for line in found if "timeout of" in line] == lines


def silenced(control, host, lasts):
    """Return a group of three, in which one host's driver is paused."""
    text = (PAUSE % ("driver", "after: 1s", lasts)).replace("host: b", f"host: {host}")
    group = GROUP.replace("%s", control).replace("wall: 20s", "wall: 60s")
    return group.replace("expect:", f"events:\n  - {text}\nexpect:")


WITHOUT = "receiver timeout of 2s: one continues without c"
STOPS = "receiver timeout of 2s: one is disconnected at a until c is back: fc=min,g:/3 needs 3 "
STOPS += "receivers, 2 are left"


@pytest.mark.parametrize(
    ("control", "host", "lasts", "line"),
    [
        ("|fc=min,g:/2,t:2s", "c", "3s", f"exceeds the {WITHOUT}"),
        ("|fc=min,t:2s", "c", "3s", f"exceeds the {WITHOUT}"),
        ("|fc=min,g:/3,t:2s", "c", "3s", f"exceeds the {STOPS}"),
        ("|fc=min,g:/3,t:2s", "c", "1700ms", f"may exceed the {STOPS}"),
        ("|fc=min,g:/3,t:2s", "c", "1s", "shorter than the receiver timeout of 2s, the image"),
        (
            "|fc=min,g:/3,t:2s",
            "a",
            "3s",
            "exceeds the receiver timeout of 2s: one is disconnected at a for a time",
        ),
    ],
)
def test_a_stream_stops_if_fewer_receivers_are_left_than_its_flow_control_requires(
    control, host, lasts, line
):
    found = lines_of(silenced(control, host, lasts))
    assert len([each for each in found if each.startswith(line)]) == 1, found
    stops = "disconnected" in line
    assert (
        "fewer than the required 3 receivers may be left: the publication is then" in found
    ) is stops
    assert (
        "disconnected, and the publisher waits until enough receivers are connected again" in found
    ) is stops


def test_a_cut_of_a_receiver_stops_a_group_that_requires_it():
    rule = "faults:\n  - {id: cut, where: {link: [a->c, c->a]}, what: {type: ANY}, "
    rule += "when: {after: 2s, for: 3s}, act: {drop: always}}\nexpect:"
    for control, line in (("|fc=min,g:/3,t:2s", STOPS), ("|fc=min,g:/2,t:2s", WITHOUT)):
        found = lines_of(GROUP.replace("%s", control).replace("expect:", rule))
        assert [each for each in found if "receiver timeout" in each] == [f"exceeds the {line}"]


@pytest.mark.parametrize(
    ("lasts", "lines"),
    [
        (
            "4s",
            [
                "shorter than the connection timeout of 5s, the linger timeout of 5s, the image "
                "liveness timeout of 10s"
            ],
        ),
        (
            "5s",
            [
                f"exceeds the {CONNECTION}",
                "exceeds the linger timeout of 5s: if one ends meanwhile, its last frames cannot "
                "be sent again",
                "shorter than the image liveness timeout of 10s",
            ],
        ),
    ],
)
def test_the_timeouts_that_a_cut_exceeds_are_named(lasts, lines):
    rule = "faults:\n  - {id: cut, where: {link: both}, what: {type: ANY}, "
    rule += f"when: {{after: 2s, for: {lasts}}}, act: {{drop: always}}}}\nexpect:"
    found = lines_of(PLAIN.replace("expect:", rule))
    assert [line for line in found if "timeout of" in line] == lines


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("", "", ["can expect delivered_once, rcv_pos_reaches_end"]),
        (
            '"aeron:udp?endpoint=${b}:24325"',
            '"aeron:udp?endpoint=${b}:24325|reliable=false"',
            [
                "can expect delivered_intact, positions_covered, pad_only_where_lost, no_naks",
                "not in `expect`: delivered_intact, positions_covered, pad_only_where_lost, "
                "no_naks",
            ],
        ),
        (
            "    content",
            "    rejoins: true\n    content",
            ["can expect delivered_in_parts", "not in `expect`: delivered_in_parts"],
        ),
    ],
)
def test_the_expectations_that_follow_are_listed(old, new, lines):
    found = lines_of(PLAIN.replace(old, new, 1))
    assert [line for line in found if "expect" in line] == lines


def test_receivers_that_are_not_awaited_can_expect_a_contiguous_range():
    text = GROUP.replace("%s", "|fc=max")
    found = [line for line in lines_of(text) if "expect" in line]
    expected = ", ".join(f"delivered_unbroken at {host}" for host in ("b", "c", "d"))
    assert found == [f"can expect {expected}", f"not in `expect`: {expected}"]
    named = text.replace("- delivered_once", "- delivered_unbroken: {to: [b, c, d]}")
    assert [line for line in lines_of(named) if "expect" in line] == [f"can expect {expected}"]


def test_a_killed_archive_delays_the_streams_that_it_records():
    text = (SCENARIOS / "archive" / "killed-while-recording.yaml").read_text()
    (line,) = [line for line in lines_of(text) if "client liveness" in line]
    assert line == (
        "the streams that it records stand still for the client liveness timeout of 6s:"
    )


@pytest.mark.parametrize(
    ("more", "window"),
    [
        ("", "32KiB (half of the term, instead of 128KiB)"),
        ("|rcv-wnd=64k", "32KiB (half of the term, instead of 64KiB)"),
        ("|rcv-wnd=32k", "32KiB"),
    ],
)
def test_a_window_is_shown_as_the_driver_limits_it(more, window):
    text = made(more=more).replace("term-length=1m", "term-length=64k")
    assert line_of(text, "^term ").endswith(f", window {window}")


def test_the_default_window_is_named_if_nothing_limits_it():
    assert line_of(made(), "^term ").endswith(", window default")


@pytest.mark.parametrize("length", [1000, 1376, 1377, 4000])
def test_the_frames_of_messages_of_one_length_are_counted(length):
    text = made(f"from: {length}B, to: {length}B")
    total, count = case_of(text).traffic[0].total_bytes, 0
    while total:
        count += len(frames(min(length, total)))
        total -= min(length, total)
    assert f" bytes, {count:,} DATA frames, about " in line_of(text, "^content ")


DROP = "  - {id: one, where: {link: a->b}, what: {type: DATA}, act: {drop: 20%}}"


def test_links_are_named_by_their_hosts():
    text = made(impairments="a->b: {loss: 1%}, b->a: {delay: {mean: 20ms}}")
    text = text.replace("expect:", f"faults:\n{DROP}\nexpect:")
    for old, new in (("[a, b]", "[nyc, lon]"), ("a->b", "nyc->lon"), ("b->a", "lon->nyc")):
        text = text.replace(old, new)
    text = (
        text.replace("from: a", "from: nyc").replace("to: b", "to: lon").replace("${b}", "${lon}")
    )
    case = resolve(
        parse_scenario(text, "made.yaml"), seed=1, fidelity="netns",
        addresses={"nyc": "10.64.0.3", "lon": "10.64.0.19"},
        payload=Payload(path="payload.bin", sha256="0" * 64, length_bytes=1),
    )  # fmt: skip
    found = explain(case)
    assert "  0 one: 20% of DATA on nyc->lon dropped\n" in found
    assert "  nyc->lon  loss " in found
    assert "  lon->nyc  delay 20ms" in found
    assert "a->b" not in found
    assert "b->a" not in found


LINGER = "retransmit linger 10ms: a gap may be sent again more than once"


def lingers(text):
    return [line for line in lines_of(text) if "linger" in line]


@pytest.mark.parametrize(
    ("delay", "sent", "more", "expected"),
    [
        ("20ms", "", "", [f"round trip 40ms > {LINGER}"]),
        ("5001us", "", "", [f"round trip 10002us > {LINGER}"]),
        ("5ms", "", "", []),
        ("20ms", "|windtunnel.retransmit-ranges=true", "", []),
        ("20ms", "|windtunnel.retransmit-ranges=false", "", [f"round trip 40ms > {LINGER}"]),
        # A measured round trip counts as at most 2 s.
        ("1500ms", "|windtunnel.retransmit-ranges=true", "", [f"round trip 3s > {LINGER}"]),
        # Receivers that repeat their NAKs less often than once in a round trip.
        ("20ms", "", "|nak-delay=1ms", []),
        ("20ms", "", "|nak-delay=100us", [f"round trip 40ms > {LINGER}"]),
        ("20ms", "", "|windtunnel.nak-all-gaps=true", []),
        ("200ms", "", "|windtunnel.nak-all-gaps=true", [f"round trip 400ms > {LINGER}"]),
        ("20ms", "", "|reliable=false", []),
    ],
)
def test_a_round_trip_above_the_retransmit_linger_is_named(delay, sent, more, expected):
    text = made(impairments=f"both: {{delay: {{mean: {delay}}}}}", more=more)
    assert lingers(text.replace("term-length=1m", f"term-length=1m{sent}")) == expected


def test_the_linger_of_a_group_does_not_follow_its_round_trips():
    for sent in ("", "|windtunnel.retransmit-ranges=true"):
        text = GROUP.replace("%s", f"|fc=min{sent}")
        assert lingers(text) == [f"c, d: round trip 40ms > {LINGER}"]
