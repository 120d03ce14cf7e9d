"""Time ranges in which a subscriber that rejoins has no image of a session.

    driver      |=========== killed|   |==== another one ================
    client      | image 1 -------------------| left        | image 2 ----
    without                        |- - - - - - - - - - - -|

The client notices only after the driver timeout that the driver of its image has ended.
"""

from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.views.pauses import NEVER_NS, Pauses, disjoint, kills_of


def without_image(evidence: Evidence, traffic: TrafficCase, session_id: int) -> Pauses:
    """Return the time ranges after the first image in which a subscriber had no image of a session
    that a driver served. None are known if it does not rejoin.
    """
    subscriber, happened = evidence.subscriber(traffic), evidence.host_events
    if isinstance(subscriber, Missing) or isinstance(happened, Missing):
        return disjoint([])
    parts = [each for each in subscriber.parts if each.session_id == session_id]
    if not parts:
        return disjoint([])
    joined_ns = sorted(each.joined_ns for each in parts)
    killed_ns = [each.began_ns for each in kills_of(evidence, traffic.to_host)]
    ended_ns = [*(each.left_ns for each in parts), *killed_ns]
    return disjoint(
        (begin_ns, min((each for each in joined_ns if each > begin_ns), default=NEVER_NS))
        for begin_ns in ended_ns
        if begin_ns > joined_ns[0]
    )
