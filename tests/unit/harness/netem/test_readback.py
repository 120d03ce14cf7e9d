"""The output of `tc -j -s qdisc show`, compared with the requested impairments.

The texts were taken from tc 6.1.0 on Linux 6.1.176 with sch_netem, right after each command.
"""

import json

import pytest

from windtunnel.harness.netem.readback import differences, parse
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase, LossCase

COUNTS = '"bytes":0,"packets":0,"drops":0,"overlimits":0,"requeues":0,"backlog":0,"qlen":0}]'


def reported(options):
    """Return the unchanged output of tc for these options."""
    return f'[{{"kind":"netem","handle":"8001:","root":true,"refcnt":2,"options":{options},{COUNTS}'


NONE = '[{"kind":"noqueue","handle":"0:","root":true,"refcnt":2,"options":{}}]'
IID = reported('{"limit":1000,"loss-random":{"loss":0.02,"correlation":0},"ecn":false,"gap":0}')
TWO = reported(
    '{"limit":1000,"loss-gemodel":{"p":0.001,"r":0.2,"1-h":1,"1-k":0},"ecn":false,"gap":0}'
)
FOUR = reported(
    '{"limit":1000,"loss-state":{"p13":0.01,"p31":0.9,"p32":0.05,"p23":0.5,"p14":0.005},'
    '"ecn":false,"gap":0}'
)
JITTER = reported(
    '{"limit":4000,"delay":{"delay":0.005,"jitter":0.001,"correlation":0},"ecn":false,"gap":0}'
)
RATE = reported(
    '{"limit":4000,"rate":{"rate":25000000,"packetoverhead":0,"cellsize":0,"celloverhead":0},'
    '"ecn":false,"gap":0}'
)
MANY = reported(
    '{"limit":4000,"delay":{"delay":0.01,"jitter":0,"correlation":0},'
    '"duplicate":{"duplicate":0.01,"correlation":0},"reorder":{"reorder":0.01,"correlation":0},'
    '"corrupt":{"corrupt":0.001,"correlation":0},"ecn":false,"gap":5}'
)


def requested(limit, **impairments):
    """Return impairments with a limit, whatever limit rendering would choose."""
    return ImpairmentCase(link="a->b", queue_packets=limit, **impairments)


ANSWERS = [
    (IID, requested(1000, loss=LossCase(model="iid", shares_ppb=(20_000_000,)))),
    (
        TWO,
        requested(
            1000,
            loss=LossCase(model="gilbert-elliott", shares_ppb=(10**6, 2 * 10**8, 10**9, 0)),
        ),
    ),
    (
        FOUR,
        requested(
            1000,
            loss=LossCase(
                model="four-state", shares_ppb=(10**7, 9 * 10**8, 5 * 10**7, 5 * 10**8, 5 * 10**6)
            ),
        ),
    ),
    (JITTER, requested(4000, delay_ns=5_000_000, jitter_ns=1_000_000, distribution="normal")),
    (RATE, requested(4000, rate_bits_per_s=200_000_000)),
    (
        MANY,
        requested(
            4000,
            delay_ns=10**7,
            duplicate_ppb=10**7,
            corrupt_ppb=10**6,
            reorder_ppb=10**7,
            reorder_gap=5,
        ),
    ),
]


@pytest.mark.parametrize(("text", "impairments"), ANSWERS)
def test_requested_impairments_are_confirmed(text, impairments):
    assert differences(impairments, parse(text)) == []


@pytest.mark.parametrize("index", range(len(ANSWERS)))
def test_the_output_for_another_command_is_detected(index):
    text, _ = ANSWERS[index]
    _, other = ANSWERS[(index + 1) % len(ANSWERS)]
    assert differences(other, parse(text))


def test_reports_what_differs():
    impairments = requested(1000, loss=LossCase(model="iid", shares_ppb=(30_000_000,)))
    assert differences(impairments, parse(IID)) == ["loss-random.loss: expected 0.03, found 0.02"]


def test_a_correlation_is_a_difference():
    text = IID.replace('"correlation":0', '"correlation":0.25')
    assert "correlation" in differences(ANSWERS[0][1], parse(text))[0]


def test_rounding_by_the_kernel_is_not_a_difference():
    text = IID.replace("0.02", "0.0200001")
    assert differences(ANSWERS[0][1], parse(text)) == []
    assert differences(ANSWERS[0][1], parse(IID.replace("0.02", "0.0201")))


def test_counts_are_read():
    document = json.loads(IID)
    document[0].update(packets=90, drops=10, qlen=3, requeues=1)
    found = parse(json.dumps(document))
    assert (found.packets, found.dropped, found.waiting, found.requeued) == (90, 10, 3, 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (NONE, "found noqueue"),
        ("[]", "found none"),
        ("", "cannot parse the output of tc"),
        ("[1]", "cannot parse the output of tc"),
        ('[{"kind":"netem","root":true}]', "cannot parse the output of tc"),
    ],
)
def test_anything_else_is_refused(text, why):
    with pytest.raises(ValueError, match=why):
        parse(text)
