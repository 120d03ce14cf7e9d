"""A recording that an archive replicates from host to host like its stream is another stream."""

import shutil
import struct
from dataclasses import replace

import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_replication import SOCKET, replicate
from tests.unit.harness.verdict.synthetic_run import (
    ADDRESS,
    SESSION_ID,
    STREAM_ID,
    SyntheticRun,
    make_run,
)
from windtunnel.harness.artifact.host.counter_sample import read_counters, write_counters
from windtunnel.harness.artifact.host.log_index import read_log_index, write_log_index
from windtunnel.harness.verdict.checks.delivery.stream_setup import setups_until_answered
from windtunnel.harness.verdict.checks.retransmission.recovery import stream_total
from windtunnel.harness.verdict.checks.retransmission.retransmit_checks import (
    retransmits_only_if_asked,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import present
from windtunnel.harness.verdict.core.outcome import Outcome


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


@pytest.mark.parametrize("check", [setups_until_answered, retransmits_only_if_asked])
def test_frames_of_a_replication_are_no_retransmits(run, check):
    replicate(run)
    finding = judged(check, Evidence(run.write()), run.traffic)
    assert finding.outcome is Outcome.PASS, finding.text


@pytest.mark.parametrize("port", [None, 50_000])
def test_frames_of_a_replication_do_not_belong_to_the_stream(run, port):
    before = present(Evidence(run.write()).wire(run.traffic))
    replicate(run)
    if port is not None:
        # A fault changes the source port of what arrives.
        for host, packets in run.packets.items():
            for at, each in enumerate(packets):
                if each.source != host and SOCKET in each.ports:
                    packets[at] = replace(each, ports=(port, each.ports[1]))
    after = present(Evidence(run.write()).wire(run.traffic))
    for name in ("sent", "arrived", "forged"):
        assert len(getattr(after, name).starts) == len(getattr(before, name).starts), name
    for name in ("heartbeats_sent", "heartbeats_arrived", "feedback_sent", "feedback_arrived"):
        assert len(getattr(after, name)) == len(getattr(before, name)), name


def test_counters_of_a_replication_do_not_belong_to_the_stream(run):
    replicate(run)
    folder = run.write()
    path = run.folder.host("a").counters
    counters = read_counters(path)
    own = next(each for each in counters if each.type_id == 19)
    channel = f"aeron:udp?endpoint={ADDRESS['b']}:8030|mtu=1408".encode()
    key = struct.pack("<qiii", 77, SESSION_ID, STREAM_ID, len(channel)) + channel
    copy = replace(own, counter_id=90, registration_id=77, key_hex=key.hex(), final_value=500)
    channel_status = replace(copy, counter_id=91, type_id=6)
    write_counters(path, [*counters, copy, channel_status])
    held = [*read_log_index(run.folder.host("a").log_index)]
    copied = replace(held[0], registration_id=77)
    write_log_index(run.folder.host("a").log_index, [*held, copied])
    logs = [
        run.folder.host("a").log_buffer("publications", each.registration_id)
        for each in (held[0], copied)
    ]
    shutil.copy(*logs)
    evidence = Evidence(folder)
    saved = present(evidence.log_of("a", "publications", SESSION_ID, STREAM_ID))
    assert saved.path == logs[0]
    assert stream_total(evidence, "a", 19, present(evidence.wire(run.traffic))) == own.final_value
