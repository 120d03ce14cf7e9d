"""Compares the result rows of a verdict with the account of the same run, one figure at a time."""

from typing import Any

from tests.figures.account import MDC, UNICAST, Account, Reader
from tests.figures.comparison import Differences

HIGHEST = 2**62
ROUNDING = 1e-9


def compare_results(rows: list[dict[str, Any]], account: Account) -> list[str]:
    """Return what differs between the result rows of a run and its account."""
    found = Differences()
    found.equal("readers", sorted(row["to_host"] for row in rows), sorted(account.readers))
    for row in rows:
        reader = account.readers[row["to_host"]]
        _compare_deliveries(found, row, account, reader)
        _compare_repairs(found, row, account, reader)
    return [f"results: {each}" for each in found]


def _compare_deliveries(
    found: Differences, row: dict[str, Any], account: Account, reader: Reader
) -> None:
    start_ns = min(account.due_ns.values())
    waits, silences, last_ns = [], [], start_ns
    for position, time_ns in reader.deliveries:
        waits.append(time_ns - account.due_ns[position])
        silences.append(time_ns - last_ns)
        last_ns = time_ns
    ended_ns = row.get("ended_ns", last_ns - start_ns)
    silences.append(start_ns + ended_ns - last_ns)
    count = len({each for each, _ in reader.deliveries})
    truths = {
        "published_messages": len(account.offered_lengths),
        "delivered_messages": count,
        "delivered_bytes": sum(reader.lengths),
        "latency_p50_ns": _percentile(waits, 50),
        "latency_p99_ns": _percentile(waits, 99),
        "latency_max_ns": max(waits),
        "longest_silence_ns": max(silences),
        "finished_ns": last_ns - start_ns,
    }
    for name, truth in truths.items():
        found.equal(f"{reader.host}: {name}", row.get(name), truth)
    rates = {"bytes": sum(reader.lengths), "messages": count}
    for name, amount in rates.items():
        rate = row.get(f"reached_{name}_per_s", 0.0)
        least, most = rate * (1 - ROUNDING), rate * (1 + ROUNDING)
        found.within(
            f"{reader.host}: reached {name} per second", least, amount / ended_ns * 1e9, most
        )


def _compare_repairs(
    found: Differences, row: dict[str, Any], account: Account, reader: Reader
) -> None:
    host = reader.host
    found.equal(f"{host}: naks", row.get("naks"), reader.feedback_frames("in", "NAK"))
    # Those that request a SETUP are not counted: one when an endpoint first sees a session, and one
    # per second to a control address.
    statuses = reader.feedback_frames("in", "SM")
    least = 1 if account.kind == MDC else statuses - 2
    found.within(f"{host}: status messages", least, row.get("status_messages", 0), statuses)
    has_copies = any(each.copies for each in account.readers.values())
    if not has_copies or row.get("lost_frames") is not None:
        lost = len(reader.dropped), sum(each.length for each in reader.dropped)
        found.equal(f"{host}: lost", (row.get("lost_frames"), row.get("lost_bytes")), lost)
    if account.reliable:
        resent = reader.forward_frames("in", "DATA", "PAD") - len(reader.frames)
        found.equal(f"{host}: resent_frames", row.get("resent_frames"), resent)
        total = account.counters["Retransmitted bytes"]
        found.equal(f"{host}: resent_bytes", row.get("resent_bytes"), total)
    if reader.displaced or account.kind != UNICAST or not account.reliable:
        return
    gaps = row.get("gaps", 0)
    # Each datagram that the receiver refused is a gap of its own, or a part of one. A copy of one
    # of its frames that is not refused divides this gap.
    most = len(reader.lost_ranges) + reader.refused_datagrams
    if reader.refused_datagrams:
        most += reader.copies
    found.within(f"{host}: gaps", _range_count(reader.lost_ranges), gaps, most)
    if "repair_p50_ns" in row:
        found.within(f"{host}: repair", 2 * account.delay_ns, row["repair_p50_ns"], HIGHEST)


def _range_count(lost: dict[int, int]) -> int:
    """Return the number of ranges that lost frames make up, given their positions and lengths."""
    ends = {position + length for position, length in lost.items()}
    return sum(position not in ends for position in lost)


def _percentile(values: list[int], percent: int) -> int:
    """Return the smallest value that at least this share of all values does not exceed."""
    ordered = sorted(values)
    return next(
        value for count, value in enumerate(ordered, 1) if count * 100 >= percent * len(ordered)
    )
