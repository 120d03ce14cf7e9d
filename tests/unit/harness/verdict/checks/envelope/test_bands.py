"""The bands of figures, and the cases to which they apply."""

import pytest

from tests.unit.harness.verdict.synthetic_run import make_run
from windtunnel.harness.artifact.documents import DocumentError, write_document
from windtunnel.harness.verdict.checks.envelope.bands import (
    RATIO_MIN,
    RUNS_MIN,
    SCHEMA,
    TAIL_RATIO_MIN,
    Band,
    Distribution,
    Envelope,
    case_digest,
    envelopes,
)


@pytest.mark.parametrize(
    ("lowest", "highest", "ratio_min", "inside", "outside"),
    [
        (10.0, 10.0, RATIO_MIN, (8.1, 10.0, 12.4), (7.9, 12.6)),
        (10.0, 20.0, RATIO_MIN, (5.0, 15.0, 40.0), (4.9, 40.1)),
        (10.0, 20.0, TAIL_RATIO_MIN, (2.5, 80.0), (2.4, 80.1)),
    ],
)
def test_a_band_extends_the_range_by_its_ratio_at_both_ends(
    lowest, highest, ratio_min, inside, outside
):
    band = Band(lowest, highest, 9, ratio_min)
    assert all(map(band.contains, inside))
    assert not any(map(band.contains, outside))


def envelope(**figures):
    return Envelope("0" * 16, 1, 9, ("aeron-c", "ours"), {"feed at b": figures})


OURS = Distribution(RUNS_MIN, 10.0, 11.0, 12.0)
AERON_C = Distribution(RUNS_MIN + 1, 20.0, 22.0, 24.0)


def test_a_band_covers_the_drivers_of_the_run():
    found = envelope(naks_per_gap={"ours": OURS, "aeron-c": AERON_C})
    both = found.bands("feed at b", {"ours", "aeron-c"})["naks_per_gap"]
    assert (both.lowest, both.highest, both.runs) == (10.0, 24.0, 2 * RUNS_MIN + 1)
    ours = found.bands("feed at b", {"ours"})["naks_per_gap"]
    assert (ours.lowest, ours.highest, ours.runs) == (10.0, 12.0, RUNS_MIN)
    assert found.bands("feed at c", {"ours"}) == {}


def test_a_tail_has_a_wider_band():
    found = envelope(repair_p99={"ours": OURS}, repair_p50={"ours": OURS})
    bands = found.bands("feed at b", {"ours"})
    assert bands["repair_p99"].ratio == TAIL_RATIO_MIN
    assert bands["repair_p50"].ratio == RATIO_MIN > 1.2


def test_a_figure_that_one_of_the_drivers_rarely_had_gets_no_band():
    rare = Distribution(RUNS_MIN - 1, 20.0, 22.0, 24.0)
    found = envelope(naks_per_gap={"ours": OURS, "aeron-c": rare})
    assert found.bands("feed at b", {"ours", "aeron-c"}) == {}
    assert set(found.bands("feed at b", {"ours"})) == {"naks_per_gap"}
    assert envelope(naks_per_gap={"ours": OURS}).bands("feed at b", {"ours", "aeron-c"}) == {}


def test_the_digest_of_a_case_depends_on_what_it_plans(tmp_path):
    case = make_run(tmp_path).case
    (stream,) = case.traffic
    digest = case_digest(case)
    moved = case.model_copy(
        update={
            "seed": case.seed + 1,
            "wall_ns": case.wall_ns + 1,
            "expect": (),
            "hosts": tuple(
                each.model_copy(update={"address": f"10.1.2.{at}"})
                for at, each in enumerate(case.hosts)
            ),
        }
    )
    assert case_digest(moved) == digest
    for changed in (
        case.model_copy(update={"faults": ()}),
        case.model_copy(update={"drivers": {"a": {"AERON_NAK_UNICAST_DELAY": "1ms"}}}),
        case.model_copy(update={"traffic": (stream.model_copy(update={"mtu": stream.mtu + 32}),)}),
    ):
        assert case_digest(changed) != digest


def test_a_file_is_read_as_it_was_written_and_a_missing_one_is_empty(tmp_path):
    file = tmp_path / "bands.json"
    assert envelopes(file) == {}
    envelopes.cache_clear()
    scenario = {
        "digest": "0" * 16,
        "first_seed": 3,
        "seeds": 9,
        "drivers": {"ours": "1.53.0"},
        "streams": {"feed at b": {"naks_per_gap": {"ours": [9, 1.0, 1.25, 1.5]}}},
    }
    write_document(file, {"schema": SCHEMA, "scenarios": {"loss/one": scenario}})
    (found,) = envelopes(file).values()
    assert (found.digest, found.first_seed, found.seeds) == ("0" * 16, 3, 9)
    assert found.drivers == ("ours",)
    distribution = found.streams["feed at b"]["naks_per_gap"]["ours"]
    assert distribution == Distribution(9, 1.0, 1.25, 1.5)


def test_a_file_of_another_schema_is_refused(tmp_path):
    file = tmp_path / "bands.json"
    write_document(file, {"schema": "windtunnel-verdict/1"})
    with pytest.raises(DocumentError, match=SCHEMA):
        envelopes(file)
