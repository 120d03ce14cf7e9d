"""What is wrong with the datagrams that a host sent: each consists of whole frames.

    SM, NAK, SETUP, RTTM, ERR, RSP_SETUP     one frame, as long as its datagram
    DATA, PAD, heartbeat                     frames of their aligned lengths, a PAD by its header

A receiver ignores what follows a control frame, so such a defect has no effect but this one.
"""

import numpy as np

from windtunnel.harness.artifact.middlebox.frame_class import (
    ERR,
    MALFORMED,
    NAK,
    NAMES,
    RSP_SETUP,
    RTTM,
    SETUP,
    SM,
)
from windtunnel.harness.dissect.capture.pcap import Capture, sent_by

_CONTROL = (NAK, SM, ERR, SETUP, RTTM, RSP_SETUP)


def wrong_datagram(capture: Capture, address: str) -> str:
    """Return what is wrong with the first datagram that an address sent and that does not consist
    of whole frames, or "".
    """
    sent = capture.frames[sent_by(capture.frames, address)]
    is_control = np.isin(sent["frame_type"], _CONTROL)
    is_cut = is_control & (sent["frame_length"] != sent["datagram_length"])
    wrong = np.flatnonzero(is_cut | (sent["frame_type"] == MALFORMED))
    if len(wrong) == 0:
        return ""
    row = sent[wrong[0]]
    kind, length = NAMES[int(row["frame_type"])], int(row["datagram_length"])
    text = f"{len(wrong)} datagrams were sent that are not made of whole frames; the first has"
    if kind == NAMES[MALFORMED]:
        return f"{text} {length} bytes, and a malformed frame"
    return f"{text} {length} bytes, expected {int(row['frame_length'])}, the length of its {kind}"
