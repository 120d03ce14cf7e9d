"""docs/reliability.md names the limits of the code. Other tests show that they have an effect."""

from pathlib import Path

import pytest

from windtunnel.driver.base.system import NS_PER_MS, NS_PER_SECOND
from windtunnel.driver.cnc import error_log
from windtunnel.driver.media_driver.conductor import conductor
from windtunnel.driver.media_driver.conductor.images import image_admission
from windtunnel.driver.media_driver.image import image_connections, nak_delay
from windtunnel.driver.media_driver.name_resolution import (
    driver_name_resolver,
    name_cache,
    neighbors,
)
from windtunnel.driver.media_driver.receiver import new_sessions, session_state
from windtunnel.driver.media_driver.receiver.receiver_state import (
    PENDING_SETUPS_MAX,
    make_receiver_state,
)
from windtunnel.driver.media_driver.sender import destination_tracker

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join((ROOT / "docs/reliability.md").read_text(encoding="utf-8").split())
WORDS = {2: "twice", 3: "three", 7: "seven", 16: "sixteenth"}
IMAGES = (make_receiver_state.__kwdefaults__ or {})["images"]
FIRST, REPEATED, PERSISTENT = image_admission.HALF_OPEN_IMAGES_MAX
EVENTS_MS = conductor.EVENTS_DURATION_NS_MAX / NS_PER_MS
CHECKS_MS = conductor.CHECKS_DURATION_NS_MAX / NS_PER_MS


@pytest.mark.parametrize(
    "sentence",
    [
        f"At most {destination_tracker.DESTINATIONS_MAX} addresses, "
        f"{destination_tracker.HOST_DESTINATIONS_MAX} of them with the same IP address",
        f"at most {image_connections.UNSPENT_BYTES_MAX >> 10} KiB are kept",
        f"| images | {IMAGES:,}; see below |",
        f"| {PENDING_SETUPS_MAX:,}, "
        f"for {session_state.PENDING_SETUP_TIMEOUT_NS // NS_PER_SECOND} s, "
        f"or for {session_state.CROWDED_SETUP_TIMEOUT_NS / NS_PER_SECOND:g} s while",
        f"after every {nak_delay.NAKS_PER_BACKOFF} NAKs the retry delay doubles, "
        f"up to {1 << nak_delay.BACKOFFS_MAX} times",
        f"| {conductor.EVENTS_PER_TURN_MAX}, or those begun within {EVENTS_MS:g} ms, per agent |",
        f"| those begun within {CHECKS_MS:g} ms; the others "
        f"{conductor.PENDING_WORK_INTERVAL_NS // NS_PER_MS} ms later |",
        f"| {neighbors.NEIGHBORS_MAX} and {name_cache.ENTRIES_MAX:,}; "
        f"{driver_name_resolver.SENDS_PER_TURN} datagrams sent and about "
        f"{driver_name_resolver.ENTRIES_PER_TURN} entries processed per 10 ms |",
        f"| {error_log.TEXTS_PER_KIND_MAX} texts for errors of one kind;",
        f"has less than {WORDS[max(image_admission.STREAM_SHARE)]} times as many images as are "
        "free",
        f"less than {WORDS[image_admission.ENDPOINT_SHARE]} times as many",
        f"A {WORDS[image_admission.RESERVED_SHARE]} of the images does not count as free",
        f"A stream that has {FIRST} images without data, or "
        f"{WORDS[image_admission.STREAM_SHARE[new_sessions.FIRST]]} as many images as are free",
        f"with pauses of at most {new_sessions.PAUSE_NS_MAX // NS_PER_MS} ms",
        f"A stream with {REPEATED} images without data accepts only sessions that have repeated "
        f"their SETUP for {new_sessions.PERSISTENT_NS // NS_PER_SECOND} s, "
        f"up to {PERSISTENT} such images",
        f"end after {image_admission.HALF_OPEN_TIMEOUT_NS // NS_PER_SECOND} s without data",
        f"for {image_admission.RESTRICTED_NS // NS_PER_SECOND} s the receiver drops those",
    ],
)
def test_its_limits_are_those_of_the_code(sentence):
    assert sentence in PAGE
