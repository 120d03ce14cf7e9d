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
    for link in case.link_names:
        account = ledger.links.get(link)
        impaired = (account and account.weather) or ImpairmentAccount()
        if impaired.corrupted:
            text = _were(link, impaired.corrupted, "damaged")
            yield f"{text}; a host discards a datagram whose UDP checksum is wrong"
        if impaired.duplicated:
            yield _were(link, impaired.duplicated, "duplicated")


def _were(link: str, count: int, what: str) -> str:
    verb = noun_for(count, "was", "were")
    return f"link {link}: {counted(count, 'datagram')} {verb} {what}"
