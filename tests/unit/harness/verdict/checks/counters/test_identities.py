"""Each counter of a stream names its stream, its client and its log."""

import struct
from dataclasses import replace

import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_events import write_with_event
from tests.unit.harness.verdict.synthetic_run import (
    SESSION_ID,
    START_NS,
    STREAM_ID,
    make_run,
)
from windtunnel.harness.artifact.host.counter_sample import CounterFacts, write_counters
from windtunnel.harness.dissect.driver_files.log_buffer import METADATA_LENGTH
from windtunnel.harness.scenario.schema.merge import MergeCase
from windtunnel.harness.verdict.checks.counters.identities import counters_identify_streams
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

PUBLISHING_CLIENT, READING_CLIENT = 11, 12
PUBLICATION, IMAGE, SUBSCRIPTION, TAP = 5, 6, 21, 22
"""Registration ids. Those of logs are the ones of the synthetic run."""
CORRELATION_ID_AT = 256


def counter(counter_id, name, type_id, registration_id, owner_id, channel, reference_id=0, end=""):
    text = channel.encode()[:92]
    key = struct.pack("<qiii", registration_id, SESSION_ID, STREAM_ID, len(text)) + text
    label = f"{name}: {registration_id} {SESSION_ID} {STREAM_ID} {channel}{end}"
    key_hex = key.ljust(112, b"\0").hex()
    return CounterFacts(
        counter_id, type_id, registration_id, owner_id, reference_id, label, key_hex, 0
    )


def system_counter(counter_id):
    key_hex = struct.pack("<i", counter_id).ljust(112, b"\0").hex()
    return CounterFacts(counter_id, 0, counter_id, -1, 0, f"system {counter_id}", key_hex, 0)


def heartbeat(counter_id, client_id):
    key_hex = struct.pack("<q", client_id).ljust(112, b"\0").hex()
    label = f"client-heartbeat: id={client_id}"
    return CounterFacts(counter_id, 11, client_id, client_id, 0, label, key_hex, 0)


@pytest.fixture
def run(tmp_path):
    made = make_run(tmp_path)
    for host, registration_id in (("a", PUBLICATION), ("b", IMAGE)):
        made.logs[host] = made.logs[host].copy()
        at = len(made.logs[host]) - METADATA_LENGTH + CORRELATION_ID_AT
        made.logs[host][at : at + 8] = list(struct.pack("<q", registration_id))
    return made


def counters_of(run):
    channel, receive = run.traffic.channel, run.traffic.receive
    kind = run.traffic.publication
    near = {
        name.partition(" ")[0]: counter(
            50 + at, name, type_id, PUBLICATION, PUBLISHING_CLIENT, channel
        )
        for at, (name, type_id) in enumerate(
            [(f"pub-pos ({kind})", 12), ("pub-lmt", 1), ("snd-pos", 2), ("snd-lmt", 9)]
        )
    }
    near["fc-receivers"] = counter(54, "fc-receivers", 17, PUBLICATION, -1, channel)
    near["client"] = heartbeat(49, PUBLISHING_CLIENT)
    near["system"] = system_counter(7)
    far = {
        name: counter(60 + at, name, type_id, IMAGE, READING_CLIENT, receive)
        for at, (name, type_id) in enumerate([("rcv-hwm", 3), ("rcv-pos", 5)])
    }
    for at, (name, registration_id) in enumerate([("sub-pos", SUBSCRIPTION), ("tap", TAP)]):
        far[name] = counter(
            62 + at, "sub-pos", 4, registration_id, READING_CLIENT, receive, IMAGE, " @0"
        )
    far["client"] = heartbeat(59, READING_CLIENT)
    return {"a": near, "b": far}


def finding_of(run, counters):
    folder = run.write()
    for host, rows in counters.items():
        write_counters(run.folder.host(host).counters, list(rows.values()))
    return counters_identify_streams(Evidence(folder), run.traffic)


def changed(run, host, name, **fields):
    counters = counters_of(run)
    counters[host][name] = replace(counters[host][name], **fields)
    return finding_of(run, counters)


def test_counters_that_name_their_stream_are_a_pass(run):
    finding = finding_of(run, counters_of(run))
    assert finding.outcome is Outcome.PASS, finding.text
    assert finding.text.startswith("9 counters ")


@pytest.mark.parametrize(
    ("host", "name", "field", "value", "text"),
    [
        ("a", "snd-pos", "owner_id", READING_CLIENT, "has owner 12, expected a client of 11"),
        ("a", "fc-receivers", "owner_id", PUBLISHING_CLIENT, "has owner 11, expected -1"),
        ("a", "pub-lmt", "reference_id", IMAGE, "has reference id 6, expected 0"),
        ("a", "snd-lmt", "registration_id", 7, "has registration id 5 in its key"),
        ("b", "rcv-pos", "owner_id", -1, "has owner -1, expected a client of 12"),
        ("b", "sub-pos", "reference_id", 0, "has reference id 0, expected 6"),
        ("b", "tap", "owner_id", 0, "has owner 0, expected a client of 12"),
        ("b", "client", "owner_id", 0, "has owner 12, expected a client of none"),
        ("a", "system", "registration_id", 0, "(7, 7, 0, -1), expected (7, 7, 7, -1)"),
        ("a", "system", "owner_id", 0, "(7, 7, 7, 0), expected (7, 7, 7, -1)"),
    ],
)
def test_a_wrong_id_is_reported(run, host, name, field, value, text):
    finding = changed(run, host, name, **{field: value})
    assert finding.outcome is Outcome.FAIL
    assert text in finding.text


@pytest.mark.parametrize(
    ("host", "process", "name", "outcome"),
    [
        ("b", "archive", "archive", Outcome.PASS),
        ("b", "archive", "tap", Outcome.FAIL),
        ("b", "publisher", "archive", Outcome.FAIL),
        ("a", "archive", "archive", Outcome.FAIL),
    ],
)
def test_a_restarted_archive_joins_later(run, host, process, name, outcome):
    counters = counters_of(run)
    far, receive = counters["b"], run.traffic.receive
    far["archive"] = counter(64, "sub-pos", 4, 23, READING_CLIENT, receive, IMAGE, " @0")
    far[name] = replace(far[name], label=far[name].label.replace(" @0", " @640"))
    folder = write_with_event(run, "kill", host, process, (0, 1))
    for each, rows in counters.items():
        write_counters(run.folder.host(each).counters, list(rows.values()))
    assert counters_identify_streams(Evidence(folder), run.traffic).outcome is outcome


@pytest.mark.parametrize(
    ("host", "name", "old", "new", "text"),
    [
        ("a", "pub-pos", "pub-pos (", "pub-pos of (", "has the name"),
        ("a", "snd-pos", "snd-pos", "snd-lmt", "has the name 'snd-lmt' in its label"),
        ("a", "pub-lmt", str(SESSION_ID), "4242", "expected '5 -4242 1001 "),
        ("b", "rcv-hwm", "aeron:udp", "aeron:ipc", "expected '6 -4242 1001 "),
        ("b", "sub-pos", " @0", " @32", "expected it to end with '@0'"),
    ],
)
def test_a_wrong_label_is_reported(run, host, name, old, new, text):
    label = counters_of(run)[host][name].label.replace(old, new)
    finding = changed(run, host, name, label=label)
    assert finding.outcome is Outcome.FAIL
    assert text in finding.text


def test_a_wrong_channel_is_reported(run):
    counters = counters_of(run)
    channel = "aeron:udp?endpoint=10.0.0.1:1"
    counters["b"]["rcv-pos"] = counter(61, "rcv-pos", 5, IMAGE, READING_CLIENT, channel)
    finding = finding_of(run, counters)
    assert finding.outcome is Outcome.FAIL
    assert f"has the channel {channel!r} in its key" in finding.text


def test_a_length_beyond_the_channel_is_reported(run):
    """A key has room for 92 bytes of a channel, and must not claim more."""
    counters = counters_of(run)
    channel = run.traffic.channel + "|alias=" + "x" * 92
    counters["a"]["snd-pos"] = long = counter(52, "snd-pos", 2, PUBLICATION, 11, channel)
    run.case = run.case.model_copy(
        update={"traffic": (run.traffic.model_copy(update={"channel": channel}),)}
    )
    for name in ("pub-pos", "pub-lmt", "snd-lmt", "fc-receivers"):
        old = counters["a"][name]
        made = counter(
            old.counter_id,
            old.label.partition(":")[0],
            old.type_id,
            old.registration_id,
            old.owner_id,
            channel,
        )
        counters["a"][name] = made
    assert finding_of(run, counters).outcome is Outcome.PASS
    key = bytearray.fromhex(long.key_hex)
    key[16:20] = struct.pack("<i", len(channel))
    counters["a"]["snd-pos"] = replace(long, key_hex=key.hex())
    finding = finding_of(run, counters)
    assert finding.outcome is Outcome.FAIL
    assert "bytes of channel in its key, found 92" in finding.text


@pytest.mark.parametrize(("host", "name"), [("a", "snd-pos"), ("b", "rcv-hwm")])
def test_an_absent_counter_is_reported(run, host, name):
    counters = counters_of(run)
    del counters[host][name]
    finding = finding_of(run, counters)
    assert finding.outcome is Outcome.FAIL
    assert finding.text == f"on host {host}, no {name} has session -4242, stream 1001 in its key"


@pytest.mark.parametrize(("had_image", "outcome"), [(False, Outcome.PASS), (True, Outcome.FAIL)])
def test_a_receiver_that_came_too_late_for_an_image_has_no_counters_of_it(run, had_image, outcome):
    counters = counters_of(run)
    for name in ("rcv-hwm", "rcv-pos", "sub-pos", "tap"):
        del counters["b"][name]
    if not had_image:
        for host in ("a", "b"):
            run.packets[host] = [each for each in run.packets[host] if each.kind != "SM"]
    assert finding_of(run, counters).outcome is outcome


@pytest.mark.parametrize(("is_over", "outcome"), [(False, Outcome.FAIL), (True, Outcome.PASS)])
def test_a_driver_that_was_restarted_after_the_end_had_no_image(run, is_over, outcome):
    counters = counters_of(run)
    for name in ("rcv-hwm", "rcv-pos", "sub-pos", "tap"):
        del counters["b"][name]
    ended_ns = run.now_ns + 10**9 if is_over else START_NS
    path = write_with_event(run, "kill", "b", "driver", (ended_ns - 1, ended_ns))
    for host, rows in counters.items():
        write_counters(run.folder.host(host).counters, list(rows.values()))
    assert counters_identify_streams(Evidence(path), run.traffic).outcome is outcome


def test_a_subscription_with_the_id_of_an_image_is_reported(run):
    counters = counters_of(run)
    receive = run.traffic.receive
    counters["b"]["tap"] = counter(63, "sub-pos", 4, IMAGE, READING_CLIENT, receive, IMAGE, " @0")
    finding = finding_of(run, counters)
    assert finding.outcome is Outcome.FAIL
    assert "expected a subscription's" in finding.text


@pytest.mark.parametrize(
    ("offset", "text"),
    [
        (1, "the log images-6 has registration id 7 in its metadata"),
        (0, "the log images-6 has counters with registration id 8"),
    ],
)
def test_a_log_without_counters_is_reported(run, offset, text):
    counters = counters_of(run)
    at = len(run.logs["b"]) - METADATA_LENGTH + CORRELATION_ID_AT
    run.logs["b"][at] += offset
    receive = run.traffic.receive
    if not offset:
        for at, (name, type_id) in enumerate([("rcv-hwm", 3), ("rcv-pos", 5)]):
            counters["b"][name] = counter(60 + at, name, type_id, 8, READING_CLIENT, receive)
        for at, name in enumerate(["sub-pos", "tap"]):
            counters["b"][name] = counter(
                62 + at, "sub-pos", 4, 21 + at, READING_CLIENT, receive, 8, " @0"
            )
    finding = finding_of(run, counters)
    assert finding.outcome is Outcome.FAIL
    assert text in finding.text


def test_missing_counters_are_inconclusive(run):
    folder = run.write()
    run.folder.host("b").counters.unlink()
    finding = judged(counters_identify_streams, Evidence(folder), run.traffic)
    assert finding.outcome is Outcome.INCONCLUSIVE


def endpoint_counters(*addresses, end):
    """Return the counters of a channel with sockets at addresses."""
    channel = "aeron:udp?endpoint=b:24325"
    text = struct.pack("<i", len(channel)) + channel.encode()
    label = f"snd-channel: {channel}{end}"
    status = CounterFacts(90, 6, 90, 0, 0, label, text.ljust(112, b"\0").hex(), 1)
    local = [
        CounterFacts(
            91 + at, 14, 90, 0, 0, f"snd-local-sockaddr: 90 {address}",
            struct.pack("<ii", 90, len(address)).ljust(112, b"\0").hex(), 1,
        )
        for at, address in enumerate(addresses)
    ]  # fmt: skip
    return [status, *local]


@pytest.mark.parametrize(
    ("addresses", "end", "is_right"),
    [
        (["10.0.0.1:4"], " 10.0.0.1:4", True),
        (["10.0.0.1:4"], " ", True),
        (["10.0.0.1:4", "10.0.0.2:5"], "", True),
        ([], "", True),
        (["10.0.0.1:4"], "", False),
        (["10.0.0.1:4"], " 10.0.0.1:5", False),
        (["10.0.0.1:4"], "x" * 400, True),
    ],
)
def test_the_label_of_a_channel_ends_with_the_address_of_its_socket(run, addresses, end, is_right):
    counters = counters_of(run)
    added = endpoint_counters(*addresses, end=end)
    counters["a"] |= {str(each.counter_id): each for each in added}
    finding = finding_of(run, counters)
    assert (finding.outcome is Outcome.PASS) == is_right, finding.text
    assert is_right or "expected it to end with '10.0.0.1:4'" in finding.text


@pytest.mark.parametrize(
    ("counter_id", "field", "value", "text"),
    [
        (90, "owner_id", PUBLISHING_CLIENT, "'snd-channel' with registration id 90 has owner 11"),
        (91, "owner_id", -1, "'snd-local-sockaddr' with registration id 90 has owner -1"),
        (91, "reference_id", 1, "has reference id 1, expected 0"),
        (91, "registration_id", 7, "has no channel 90 with its registration id"),
    ],
)
def test_wrong_ids_of_channels_and_sockets_are_reported(run, counter_id, field, value, text):
    counters = counters_of(run)
    for each in endpoint_counters("10.0.0.1:4", end=" 10.0.0.1:4"):
        changed = replace(each, **{field: value}) if each.counter_id == counter_id else each
        counters["a"][str(each.counter_id)] = changed
    finding = finding_of(run, counters)
    assert finding.outcome is Outcome.FAIL
    assert text in finding.text


RECORDED = "aeron:udp?endpoint=b:1|nak-delay=1ms|rcv-wnd=16384|control-mode=dynamic|control=a:2"
STORED = "aeron:udp?endpoint=b:1|control=a:2|control-mode=dynamic|rcv-wnd=16k"


@pytest.mark.parametrize(
    ("recorded", "channel", "outcome"),
    [
        ("b", STORED, Outcome.PASS),
        ("b", RECORDED, Outcome.PASS),
        ("b", STORED.replace("16k", "16384"), Outcome.FAIL),
        ("b", "aeron:udp?endpoint=b:1|rcv-wnd=16k|control=a:2", Outcome.FAIL),
        ("", STORED, Outcome.FAIL),
    ],
)
def test_an_archive_subscribes_with_its_form_of_the_channel(run, recorded, channel, outcome):
    changes = {"receive": RECORDED, "recorded": recorded}
    run.case = run.case.model_copy(
        update={"traffic": (run.traffic.model_copy(update=changes),)},
    )
    counters = counters_of(run)
    counters["b"]["tap"] = counter(63, "sub-pos", 4, TAP, READING_CLIENT, channel, IMAGE, " @0")
    finding = finding_of(run, counters)
    assert finding.outcome is outcome, finding.text
    assert outcome is Outcome.PASS or f"expected {RECORDED!r}" in finding.text


REPLAYED = "aeron:udp?endpoint=b:1|mtu=1408|term-length=64k|init-term-id=-3|term-id=-3"


@pytest.mark.parametrize(
    ("replays", "end", "outcome"),
    [
        ("other", "|term-offset=0", Outcome.PASS),
        ("other", "|term-offset=0|linger=5s", Outcome.PASS),
        ("other", "|term-offset=32", Outcome.FAIL),
        ("", "|term-offset=0", Outcome.FAIL),
    ],
)
def test_a_replay_has_the_parameters_of_the_recording(run, replays, end, outcome):
    changes = {"channel": "aeron:udp?endpoint=b:1", "replays": replays}
    run.case = run.case.model_copy(
        update={"traffic": (run.traffic.model_copy(update=changes),)},
    )
    counters = counters_of(run)
    name = f"pub-pos ({run.traffic.publication})"
    counters["a"]["pub-pos"] = counter(
        50, name, 12, PUBLICATION, PUBLISHING_CLIENT, f"{REPLAYED}{end}"
    )
    for at, each in enumerate(("pub-lmt", "snd-pos", "snd-lmt")):
        kind = {"pub-lmt": 1, "snd-pos": 2, "snd-lmt": 9}[each]
        channel = f"{REPLAYED}|term-offset=0" if replays else "aeron:udp?endpoint=b:1"
        counters["a"][each] = counter(51 + at, each, kind, PUBLICATION, PUBLISHING_CLIENT, channel)
    finding = finding_of(run, counters)
    assert finding.outcome is outcome, finding.text


def test_a_subscriber_that_merges_has_a_subscription_without_an_endpoint(run):
    merges = MergeCase(after_bytes=1, live="aeron:udp?endpoint=b:3|control=a:2", port=3)
    changes = {"receive": RECORDED, "recorded": "b", "merges": merges}
    run.case = run.case.model_copy(
        update={"traffic": (run.traffic.model_copy(update=changes),)},
    )
    counters = counters_of(run)
    for each, kind in (("rcv-hwm", 3), ("rcv-pos", 5)):
        counters["b"][each] = counter(60 + kind, each, kind, IMAGE, READING_CLIENT, STORED)
    merging = f"aeron:udp?control-mode=manual|session-id={SESSION_ID}"
    for at, (each, channel) in enumerate([("sub-pos", merging), ("tap", STORED)]):
        ids = 80 + at, "sub-pos", 4, SUBSCRIPTION + at, READING_CLIENT, channel, IMAGE, " @0"
        counters["b"][each] = counter(*ids)
    finding = finding_of(run, counters)
    assert finding.outcome is Outcome.PASS, finding.text
    counters["b"]["tap"] = counter(
        81, "sub-pos", 4, TAP, READING_CLIENT, f"{merging}1", IMAGE, " @0"
    )
    assert finding_of(run, counters).outcome is Outcome.FAIL
