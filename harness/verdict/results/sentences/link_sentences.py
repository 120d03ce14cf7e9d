"""Sentences about what the middlebox's impairments did to datagrams, besides losing them.

link a->b: 101 datagrams were damaged; a host discards a datagram whose UDP checksum is wrong
link a->b: 530 datagrams were duplicated
"""

from collections.abc import Iterator

from windtunnel.harness.artifact.middlebox.impairment_account import ImpairmentAccount
from windtunnel.harness.artifact.noun_form import counted, noun_for
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing


def link_sentences(evidence: Evidence, case: Case) -> Iterator[str]:
    """Yield sentences about the links whose impairments damaged or duplicated datagrams."""
    ledger = evidence.ledger
    if isinstance(ledger, Missing):
        return
    for link, hosts in zip(case.link_names, case.hosts_of_links(case.link_names), strict=True):
        account = ledger.links.get(link)
        impaired = (account and account.impairments) or ImpairmentAccount()
        if impaired.corrupted:
            text = _were(hosts, impaired.corrupted, "damaged")
            yield f"{text}; a host discards a datagram whose UDP checksum is wrong"
        if impaired.duplicated:
            yield _were(hosts, impaired.duplicated, "duplicated")


def _were(hosts: str, count: int, what: str) -> str:
    verb = noun_for(count, "was", "were")
    return f"link {hosts}: {counted(count, 'datagram')} {verb} {what}"
