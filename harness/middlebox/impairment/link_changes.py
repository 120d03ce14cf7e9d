"""Changes of the relay's impairments while packets pass, with the counts until then."""

from windtunnel.harness.middlebox.impairment import impairment as columns
from windtunnel.harness.middlebox.impairment.impairment import Impairments
from windtunnel.harness.middlebox.impairment.impairment_settings import jitters, settings
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
from windtunnel.harness.scenario.resolved.link_change import LinkChange, LinkCounts

_COLUMNS = {
    "received": columns.RECEIVED,
    "lost": columns.LOST,
    "overflowed": columns.OVERFLOWED,
    "duplicated": columns.DUPLICATED,
    "corrupted": columns.CORRUPTED,
    "reordered": columns.REORDERED,
    "sent": columns.SENT,
}


def change_link(
    impairments: Impairments,
    case: ImpairmentCase,
    link_names: tuple[str, ...],
    *,
    number: int,
    at_ns: int,
) -> LinkChange:
    """Replace the impairments of a link direction. Returns the change, with the number of its
    request.
    """
    link = link_names.index(case.link)
    counts = impairments.counts[link]
    before = {name: int(counts[column]) for name, column in _COLUMNS.items()}
    impairments.settings[link] = settings([case], link_names)[link]
    impairments.jitters[link] = jitters([case], link_names)[link]
    # A loss model begins in its good state, whatever the one before it left behind.
    impairments.state[link, columns.CHAIN] = 0
    impairments.state[link, columns.SINCE] = 0
    return LinkChange(number=number, at_ns=at_ns, impairments=case, counts=LinkCounts(**before))
