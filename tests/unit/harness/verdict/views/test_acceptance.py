"""Which arrived frames a receiver may have rejected."""

from tests.unit.harness.verdict.synthetic_run import make_run
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.views.acceptance import rejected_positions


def rejected_of(run):
    evidence = Evidence(run.write())
    return rejected_positions(evidence.wire(run.traffic), 0).tolist()


def test_no_frame_of_an_ordinary_stream_was_rejected(tmp_path):
    assert rejected_of(make_run(tmp_path, drops=False)) == []


def test_before_the_first_status_message_there_may_be_no_image(tmp_path):
    run = make_run(tmp_path, drops=False)
    first, second = [each for each in run.packets["b"] if each.kind == "SM"][:2]
    run.packets["b"].remove(first)
    early = [
        each for each in run.packets["b"] if each.kind == "DATA" and each.time_ns < second.time_ns
    ]
    assert len(early) > 1
    assert rejected_of(run) == run.log.frames["position"][: len(early)].tolist()
