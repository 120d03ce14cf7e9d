"""The frames of the archives of a case, apart from those of its streams.

    archive of b   -- recording of stream 1001 ---> port 8030 of the archive of a
                   <- requests, port 8010 ---------
                   -- responses, ports 8020, 8040 >

An archive sends a recording to another one with the recorded stream's ids, perhaps from the same
host to the same host as the stream itself. Only the ports tell them apart. A fault may change the
source port of what arrives, so an answer is known by the port to which it is sent.
"""

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.dissect.capture.pcap import sent_by, sent_to
from windtunnel.harness.dissect.frames.frames import Frames
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.schema.archive import CONTROL_PORT, REPLICATION_PORTS


def archive_places(case: Case) -> list[tuple[str, int]]:
    """Return address and port of each socket at which archives receive from other hosts. There are
    none if no recording is replicated.
    """
    found = set()
    for traffic in case.traffic:
        if traffic.replicated:
            for port in REPLICATION_PORTS:
                host = traffic.recorded if port == CONTROL_PORT else traffic.replicated
                found.add((case.address(host), port))
    return sorted(found)


def of_archives(frames: Frames, case: Case, host: str) -> NDArray[np.bool_]:
    """Return a mask of the frames of archives' own streams in the capture of a host."""
    to_archive, found = np.zeros((2, len(frames)), dtype=np.bool_)
    for address, port in archive_places(case):
        to_archive |= sent_to(frames, address) & (frames["destination_port"] == port)
        found |= sent_by(frames, address) & (frames["source_port"] == port)
    own = case.address(host)
    sockets = np.unique(frames["source_port"][to_archive & sent_by(frames, own)])
    answers = sent_to(frames, own) & np.isin(frames["destination_port"], sockets)
    all_of_them: NDArray[np.bool_] = found | to_archive | answers
    return all_of_them
