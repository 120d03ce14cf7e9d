"""Finds a rejection that reached a publication but left no entry in its driver's error log.

    SM of receiver 7 ---->  a live receiver
    ERR of receiver 7 --->  removes it, and leaves one entry with its ids and its message

Repeated ERR frames find no live receiver, and leave none. Source: Aeron 1.53,
`aeron_network_publication_on_error` and `aeron_driver_conductor_on_publication_error`.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.host_facts import ErrorObservation
from windtunnel.harness.artifact.middlebox.frame_class import ERR, SM
from windtunnel.harness.dissect.capture.pcap import Capture, sent_by
from windtunnel.harness.dissect.frames import layout

LIVE_NS = 1_000_000_000
"""Time for which a receiver is certainly live after a status message: less than the five seconds
until it is given up, and than what drivers can be set to in a scenario."""
NOTICE_NS = 100_000_000
"""Time in which a driver certainly has written the entry."""


def unrecorded(capture: Capture, address: str, errors: Iterable[ErrorObservation]) -> str:
    """Return the text that is missing in the error log of the host with this address, or ""."""
    texts = [each.text for each in errors]
    arrived = capture.frames[~sent_by(capture.frames, address)]
    if len(arrived) == 0:
        return ""
    last_ns = int(capture.frames["time_ns"].max())
    statuses = arrived[arrived["frame_type"] == SM]
    statuses = statuses[(statuses["flags"] & layout.SM_FLAG_SEND_SETUP) == 0]
    for row in arrived[arrived["frame_type"] == ERR]:
        time_ns, length = int(row["time_ns"]), int(row["frame_length"])
        if length != row["datagram_length"] or time_ns + NOTICE_NS > last_ns:
            continue
        frame = capture.buf[int(row["at"]) : int(row["at"]) + length]
        values = {each.name: _value(frame, each) for each in layout.ERR.fields}
        own = statuses[statuses["receiver_id"] == values["receiver_id"]]
        own = own[own["time_ns"] <= time_ns - 1]
        for name in ("session_id", "stream_id"):
            own = own[own[name] == values[name]]
        is_live = len(own) and time_ns - int(own["time_ns"].max()) < LIVE_NS
        text = _entry(frame, values)
        if is_live and not any(text in each for each in texts):
            # A receiver that had left at its end of stream is not live either.
            last = own[np.argmax(own["time_ns"])]
            if not last["flags"] & layout.SM_FLAG_END_OF_STREAM:
                return text
    return ""


def _value(frame: NDArray[np.uint8], field: layout.Field) -> int:
    content = frame[field.offset : field.end].tobytes()
    return int.from_bytes(content, "little", signed=field.signed)


def _entry(frame: NDArray[np.uint8], values: dict[str, int]) -> str:
    """Return the part of an entry that is the same in the logs of ours and of Aeron's drivers."""
    has_tag = int(frame[layout.HEADER[2].offset]) & layout.ERR_FLAG_HAS_GROUP_TAG
    message = frame[layout.ERR.length :][: max(values["error_length"], 0)].tobytes()
    return (
        f"sessionId={values['session_id']}, streamId={values['stream_id']}, "
        f"receiverId={values['receiver_id']}, groupId={values['group_tag'] if has_tag else -1}, "
        f"errorCode={values['error_code']}, errorMessage={message.decode('utf-8', 'replace')}"
    )
