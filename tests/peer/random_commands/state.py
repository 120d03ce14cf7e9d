"""What a driver shows of itself, in a form that is the same for two equal drivers.

Left out are values that depend on time or on the numbers of datagrams, such as heartbeats, bytes
and status messages, and padding of keys, in which the C driver leaves what its stack contained.
"""

import re
import struct
from collections import Counter

from tests.peer.random_commands.drivers import DriverUnderTest
from windtunnel.driver.logbuffer import descriptor

SYSTEM, CLIENT_HEARTBEAT, BACK_PRESSURE_EVENTS = 0, 11, 13
NAKS_RECEIVED, NAKS_SENT = 19, 20
MULTI_DESTINATION_COUNT, LOCAL_SOCKET_ADDRESS = 18, 14
CHANNEL_STATUSES = (6, 7, MULTI_DESTINATION_COUNT)
STREAM_COUNTERS = (1, 2, 3, 4, 5, 9, 10, 12, 13, 15, 16, 17, 19, 20)
"""Counter types whose keys are a registration id, a session id, a stream id and a channel."""
TIMED = (CLIENT_HEARTBEAT, BACK_PRESSURE_EVENTS, NAKS_RECEIVED, NAKS_SENT)
COMPARED = {
    14: "invalid packets", 15: "errors", 23: "loss gap fills", 24: "client timeouts",
    40: "publications revoked", 41: "publication images revoked", 42: "images rejected",
}  # fmt: skip
"""System counters that do not depend on time."""
META_END = 1_024
_ZEROS = re.compile("\0{9,}")
DEFAULT_HEADER_TERM_ID = descriptor.DEFAULT_HEADER + 20


def state(driver: DriverUnderTest) -> list[tuple[object, ...]]:
    """Return the counters, the files and the metadata of the logs that are in use."""
    driver.listen()
    found = [*_counters(driver), *_files(driver), *_logs(driver)]
    return sorted(found, key=repr)


def _counters(driver: DriverUnderTest) -> list[tuple[object, ...]]:
    names, rows = driver.names, []
    for counter in driver.counters:
        if counter.type_id == SYSTEM:
            if counter.counter_id in COMPARED:
                rows.append(("system counter", COMPARED[counter.counter_id], counter.value))
            continue
        value = "any" if counter.type_id in TIMED else counter.value
        ids = (counter.registration_id, counter.owner_id, counter.reference_id)
        label = names.in_text(counter.label)
        if counter.type_id == LOCAL_SOCKET_ADDRESS:
            name, _, address = label.split(" ", 2)  # the middle one is the number of a counter
            label = f"{name} {address}"
        key = names.in_bytes(_key(counter.type_id, counter.key))
        rows.append(("counter", counter.type_id, label, key, value, *map(names.of, ids)))
    return rows


def _key(type_id: int, key: bytes) -> bytes:
    """Return the part of a key that its type defines."""
    if type_id in CHANNEL_STATUSES:
        begin, length_at = 0, 0
    elif type_id in STREAM_COUNTERS:
        begin, length_at = 0, 16
    elif type_id == LOCAL_SOCKET_ADDRESS:
        begin, length_at = 4, 4  # before it is the number of a counter
    else:
        return key[:8] if type_id == CLIENT_HEARTBEAT else key.rstrip(b"\0")
    (length,) = struct.unpack_from("<i", key, length_at)
    return key[begin : length_at + 4 + length]


def _files(driver: DriverUnderTest) -> list[tuple[object, ...]]:
    return [
        ("file", driver.names.in_text(str(path.relative_to(driver.directory))))
        for folder in ("publications", "images")
        for path in (driver.directory / folder).iterdir()
    ]


def _logs(driver: DriverUnderTest) -> list[tuple[object, ...]]:
    """Return the metadata of the logs whose files exist, with terms relative to the first one."""
    rows = []
    for number, log in driver.logs.items():
        if not any(driver.directory.glob(f"*/{number}.logbuffer")):
            continue
        meta = bytearray(log.log[log.meta_at : log.meta_at + META_END])
        (initial,) = struct.unpack_from("<i", meta, descriptor.INITIAL_TERM_ID)
        tails = struct.unpack_from("<3q", meta, descriptor.TERM_TAILS)
        terms = [tail and ((tail >> 32) - initial, tail & 0xFFFF_FFFF) for tail in tails]
        (eos_position,) = struct.unpack_from("<q", meta, descriptor.END_OF_STREAM_POSITION)
        (count,) = struct.unpack_from("<i", meta, descriptor.ACTIVE_TERM_COUNT)
        for at in (descriptor.INITIAL_TERM_ID, DEFAULT_HEADER_TERM_ID, *driver.unlike_metadata):
            meta[at : at + 4] = bytes(4)
        rest = driver.names.in_bytes(bytes(meta[descriptor.CORRELATION_ID :]))
        rest = _ZEROS.sub(lambda found: f"[{len(found[0])} zeros]", rest)
        rows.append(("log", driver.names.of(number), *terms, count, eos_position, rest))
    return rows


def differences(drivers, states):
    """Return a line for each row of a state and each response that one driver does not have."""
    found = [Counter(rows) + driver.responses for rows, driver in zip(states, drivers, strict=True)]
    lines = []
    for driver, own, other in zip(drivers, found, reversed(found), strict=True):
        lines += [f"{driver.kind}: {row}" for row in (own - other).elements()]
    return lines
