"""Impairments: valid and invalid scenario files, and the resolved case."""

import pytest

from tests.unit.harness.scenario.resolved.test_case import resolved
from tests.unit.harness.scenario.test_scenario_loader import GOOD, faults_of
from windtunnel.harness.scenario.explain.explain import explain
from windtunnel.harness.scenario.json_schema import json_schema
from windtunnel.harness.scenario.loader import parse_scenario
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase, LossCase
from windtunnel.harness.scenario.schema.units import (
    BILLION,
    format_rate,
    parse_probability,
    parse_rate,
)

LINK = "  link: {between: [a, b], backend: relay}\n"


def with_impairments(impairments, backend="relay"):
    return GOOD.replace(
        LINK,
        f"  link:\n    between: [a, b]\n    backend: {backend}\n    impairments: {impairments}\n",
    )


def impairments_of(impairments):
    return resolved(with_impairments(impairments)).impairments


def refusal(impairments, backend="relay"):
    (fault,) = faults_of(with_impairments(impairments, backend))
    return fault


def test_accepts_all_keys_at_once():
    (found,) = impairments_of(
        "{a->b: {loss: 2%, delay: {mean: 5ms, jitter: 1ms, distribution: normal}, "
        "rate: 200Mbit/s, queue: 4000, duplicate: 1%, corrupt: 0.1%, "
        "reorder: {share: 1%, gap: 5}}}"
    )
    assert found == ImpairmentCase(
        link="a->b",
        loss=LossCase(model="iid", shares_ppb=(20_000_000,)),
        delay_ns=5_000_000,
        jitter_ns=1_000_000,
        distribution="normal",
        rate_bits_per_s=200_000_000,
        queue_packets=4000,
        duplicate_ppb=10_000_000,
        corrupt_ppb=1_000_000,
        reorder_ppb=10_000_000,
        reorder_gap=5,
    )


def test_both_applies_to_each_direction():
    found = impairments_of("{both: {loss: 1%}}")
    assert [each.link for each in found] == ["a->b", "b->a"]
    assert found[0].loss == found[1].loss


def test_links_are_named_by_the_order_of_their_ends():
    text = with_impairments("{a->b: {loss: 1%}}").replace("between: [a, b]", "between: [b, a]")
    (found,) = resolved(text).impairments
    assert found.link == "b->a"


def test_two_states_have_defaults():
    (found,) = impairments_of("{a->b: {loss: {good_to_bad: 0.1%, bad_to_good: 20%}}}")
    assert found.loss.model == "gilbert-elliott"
    assert found.loss.shares_ppb == (1_000_000, 200_000_000, BILLION, 0)


def test_four_states_keep_the_order_of_tc():
    (found,) = impairments_of("{a->b: {loss: {p13: 1%, p31: 90%, p32: 5%, p23: 50%, p14: 0.5%}}}")
    assert found.loss.model == "four-state"
    assert found.loss.shares_ppb == (10_000_000, 900_000_000, 50_000_000, 500_000_000, 5_000_000)


def test_a_case_without_impairments_reads_as_before(tmp_path):
    case = resolved()
    document = case.to_json()
    assert case.impairments == ()
    older = document.replace(',\n "backend": "relay",\n "impairments": []', "")
    assert older != document
    (tmp_path / "case.json").write_text(older)
    assert Case.read(tmp_path / "case.json") == case


def test_a_case_with_impairments_is_read_back_as_written(tmp_path):
    case = resolved(with_impairments("{both: {loss: {p13: 1%, p31: 90%}, rate: 1Mbit/s}}"))
    case.write(tmp_path / "case.json")
    assert Case.read(tmp_path / "case.json") == case
    assert case.impairments_of("b->a").rate_bits_per_s == 1_000_000


@pytest.mark.parametrize(
    ("impairments", "where", "text"),
    [
        ("{a->c: {loss: 1%}}", "impairments.a->c", "found 'a->c'"),
        (
            "{both: {loss: 1%}, a->b: {loss: 1%}}",
            "impairments.both",
            "`both` cannot be combined",
        ),
        ("{a->b: {}}", "impairments.a->b", "at least one of"),
        ("{a->b: {loss: 0%}}", "a->b.loss", "above 0%"),
        ("{a->b: {loss: 2}}", "a->b.loss", "with a unit"),
        ("{a->b: {loss: {good_to_bad: 1%}}}", "loss.bad_to_good", "missing"),
        ("{a->b: {loss: {good_to_bad: 1%, bad_to_good: 5%, h: 1%}}}", "loss.h", "unknown key"),
        ("{a->b: {loss: {p13: 1%}}}", "loss.p31", "missing"),
        ("{a->b: {loss: {p13: 60%, p31: 5%, p14: 50%}}}", "loss.p13", "at most 100%"),
        ("{a->b: {loss: {p13: 1%, p31: 50%, p32: 5%}}}", "loss.p32", "both or neither"),
        ("{a->b: {delay: {mean: 1ms, jitter: 2ms}}}", "delay.jitter", "at most the mean of 1ms"),
        ("{a->b: {delay: {mean: 11s}}}", "delay.mean", "expected at most"),
        ("{a->b: {delay: {mean: 1ms, distribution: normal}}}", "distribution", "needs jitter"),
        ("{a->b: {delay: {mean: 1ms, correlation: 5%}}}", "delay.correlation", "unknown key"),
        ("{a->b: {reorder: {share: 1%}}}", "a->b.reorder", "needs a delay"),
        ("{a->b: {rate: 5}}", "a->b.rate", "with a unit"),
        ("{a->b: {rate: 5bit/s}}", "a->b.rate", "expected at least"),
        ("{a->b: {queue: 10}}", "a->b.queue", "needs a rate"),
        (
            "{a->b: {rate: 1Gbit/s, delay: {mean: 100ms}, queue: 1000}}",
            "a->b.queue",
            "at least 16666",
        ),
        (
            "{a->b: {loss: {good_to_bad: 1%, bad_to_good: 5%, bad_loss: 1%, good_loss: 1%}}}",
            "loss.bad_loss",
            "more than good_loss",
        ),
    ],
)
def test_refuses_invalid_impairments(impairments, where, text):
    found = refusal(impairments)
    assert where in found
    assert text in found
    assert found.startswith("made.yaml:11:")


def test_netem_without_impairments_is_rejected():
    (found,) = faults_of(GOOD.replace("backend: relay", "backend: netem"))
    assert "netem has nothing to apply" in found


def test_explains_the_rate_of_a_loss_model():
    impairments = "{a->b: {loss: {good_to_bad: 0.1%, bad_to_good: 20%}, rate: 1Mbit/s}}"
    text = explain(resolved(with_impairments(impairments)))
    assert "0.498% of the packets, in bursts of 5.00 on average" in text
    assert "rate 1Mbit/s, queue unlimited" in text
    assert "applied by relay" in text


def test_explains_nothing_without_impairments():
    assert "impairments" not in explain(resolved())


def test_the_json_schema_accepts_it():
    assert "impairments" in json_schema()["$defs"]["Link"]["properties"]
    assert "good_to_bad" in json_schema()["$defs"]["GilbertElliott"]["properties"]


@pytest.mark.parametrize(("text", "value"), [("0%", 0), ("0.0 %", 0), ("3%", 30_000_000)])
def test_a_probability_may_be_zero(text, value):
    assert parse_probability(text) == value


@pytest.mark.parametrize("text", ["0", "101%", "-1%", 0])
def test_an_invalid_probability_is_refused(text):
    with pytest.raises(ValueError, match="a share"):
        parse_probability(text)


def test_rates_are_read_back_as_formatted():
    assert parse_rate("200Mbit/s") == 200_000_000
    assert format_rate(200_000_000) == "200Mbit/s"
    with pytest.raises(ValueError, match="a rate with a unit"):
        parse_rate("200M")
    assert parse_scenario(
        with_impairments("{a->b: {rate: 1.5kbit/s}}"), "x"
    ).network.link.impairments
