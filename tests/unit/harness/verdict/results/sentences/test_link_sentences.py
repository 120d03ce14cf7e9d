"""Sentences about damaged and duplicated datagrams have the counts of the ledger."""

from types import SimpleNamespace

import pytest

from windtunnel.harness.artifact.middlebox.impairment_account import ImpairmentAccount
from windtunnel.harness.artifact.middlebox.ledger import Ledger, LinkAccount
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.results.sentences.link_sentences import link_sentences

CASE = SimpleNamespace(
    link_names=("a->b", "b->a"), hosts_of_links=lambda links: ["lon->nyc", "nyc->lon"]
)
DISCARDED = "a host discards a datagram whose UDP checksum is wrong"


def sentences(ledger):
    return list(link_sentences(SimpleNamespace(ledger=ledger), CASE))


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"lost": 7}, []),
        ({"corrupted": 1}, [f"link nyc->lon: 1 datagram was damaged; {DISCARDED}"]),
        (
            {"corrupted": 1010, "duplicated": 2},
            [
                f"link nyc->lon: 1,010 datagrams were damaged; {DISCARDED}",
                "link nyc->lon: 2 datagrams were duplicated",
            ],
        ),
    ],
)
def test_impaired_datagrams_are_counted_by_link(counts, expected):
    links = {"a->b": LinkAccount(), "b->a": LinkAccount(impairments=ImpairmentAccount(**counts))}
    assert sentences(Ledger(links)) == expected


def test_there_are_no_sentences_without_a_ledger():
    assert sentences(Missing("ledger.json", "is missing")) == []
    assert sentences(Ledger({})) == []
