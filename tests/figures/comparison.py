"""Compares the figures of an analysis with the account of the same run, one by one.

A figure is exact (`Differences.equal`), or an estimate whose bounds contain the truth
(`Differences.within`). docs/figures.md lists which is which.
"""

import re
from typing import Any

from tests.figures.account import GROUP, MDC, UNICAST, Account, Reader

_HIGHEST = 2**62


class Differences(list[str]):
    """Descriptions of the figures that differ from the account."""

    def equal(self, name: str, printed: Any, truth: Any) -> None:
        if printed != truth:
            self.append(f"{name}: printed {printed}, but the records have {truth}")

    def within(self, name: str, least: Any, truth: Any, most: Any) -> None:
        if not least <= truth <= most:
            self.append(f"{name}: printed {least} to {most}, but the records have {truth}")


def compare(tables: dict[str, list[dict[str, Any]]], account: Account) -> list[str]:
    """Return what differs between an analysis of any vantage points of a run and its account."""
    found = Differences()
    points = {row["vantage_point"] for row in tables["captures"]}
    for point in sorted(points):
        here = {
            name: [row for row in rows if row.get("vantage_point") == point]
            for name, rows in tables.items()
        }
        _compare_capture(found, here["captures"][0], account)
        if point == account.sender:
            _compare_sender(found, here, account)
        else:
            _compare_reader(found, here, account, account.readers[point])
    expected = {each for each in points if each != account.sender and account.sender in points}
    found.equal("links", {row["to_point"] for row in tables["links"]}, expected)
    for row in tables["links"]:
        if row["to_point"] in expected and row["from_point"] == account.sender:
            _compare_link(found, row, account, account.readers[row["to_point"]])
        else:
            found.append(f"link {row['from_point']} to {row['to_point']}: no data travels there")
    return list(found)


def compare_text(lines: list[str], account: Account) -> list[str]:
    """Return what differs between the lines that are printed and the account."""
    found = Differences()
    for line in lines:
        flow = re.match(r"stream 1001 session -?\d+ at (\w+) to", line)
        if flow and flow[1] in account.readers:
            reader = account.readers[flow[1]]
            lost = re.search(r"; lost ([\d,]+)(?: to ([\d,]+))? bytes", line)
            least, most = (lost[1], lost[2] or lost[1]) if lost else ("0", "0")
            truth = sum(reader.lost_ranges.values())
            name = f"{flow[1]}: lost bytes as text"
            found.within(f"{name}, least", 0, _number(least), truth)
            found.within(f"{name}, most", _shown_bytes(account, reader), _number(most), _HIGHEST)
            if account.reliable:
                _equal_text(found, line, r": ([\d,]+) messages", len(reader.lengths))
        elif flow:
            _equal_text(found, line, r": ([\d,]+) messages", len(account.offered_lengths))
            _equal_text(found, line, r"to position ([\d,]+)", account.end_position)
        link = re.match(r"link (\w+) to (\w+), stream 1001: lost ([\d,]+) of ([\d,]+)", line)
        if link:
            reader = account.readers[link[2]]
            printed_counts = tuple(_number(each) for each in link.groups()[2:])
            sent = reader.forward_frames("in", "DATA", "PAD")
            found.equal(line[:24], printed_counts, (len(reader.dropped), sent))
    return list(found)


def _shown_bytes(account: Account, reader: Reader) -> int:
    """Return the least bytes of lost frames that this reader's capture shows."""
    lost = sum(reader.lost_ranges.values())
    return lost if account.kind == UNICAST else lost - reader.unseen_bytes


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _equal_text(found: Differences, line: str, pattern: str, truth: int) -> None:
    match = re.search(pattern, line)
    found.equal(pattern, _number(match[1]) if match else None, truth)


def _compare_capture(found: Differences, row: dict[str, Any], account: Account) -> None:
    point = row["vantage_point"]
    readers = list(account.readers.values())
    if point in account.readers:
        reader = account.readers[point]
        packets = reader.forward_ledger["datagrams_out"] + reader.feedback_ledger["datagrams_in"]
        frames = reader.forward_frames("out") + reader.feedback_frames("in")
    else:
        # The sender's interface sends one packet to a group, and the relay one per member.
        sent = readers[:1] if account.kind == GROUP else readers
        packets = sum(each.forward_ledger["datagrams_in"] for each in sent)
        packets += sum(each.feedback_ledger["datagrams_out"] for each in readers)
        frames = sum(each.forward_frames("in") for each in sent)
        frames += sum(each.feedback_frames("out") for each in readers)
    found.equal(f"{point}: packets", row["packets"], packets)
    found.equal(f"{point}: frames", row["frames"], frames)


def _compare_sender(
    found: Differences, here: dict[str, list[dict[str, Any]]], account: Account
) -> None:
    readers = list(account.readers.values())
    point, flows = account.sender, here["flows"]
    for row in here["streams"]:
        _compare_geometry(found, row, account)
    for row in flows:
        name = f"{point} to {row['destination']}"
        found.equal(f"{name}: high_position", row["high_position"], account.end_position)
        found.equal(f"{name}: messages", row["messages"], len(account.offered_lengths))
        if account.reliable:
            frames = readers[0].frames
            found.equal(f"{name}: first_frames", row["first_frames"], len(frames))
            length = sum(each[0] for each in frames.values())
            found.equal(f"{name}: first_bytes", row["first_bytes"], length)
        zeros = ("lost_bytes_max", "reordered_frames", "duplicate_frames", "late_frames")
        for zero in (*zeros, "earlier_frames"):
            found.equal(f"{name}: {zero}", row[zero], 0)
    total = {key: sum(row[key] for row in flows) for key in ("naks", "resent_bytes")}
    found.equal(f"{point}: naks", total["naks"], account.counters["NAKs received"])
    # The driver counts a retransmit once, and sends it to each destination.
    retransmitted = account.counters["Retransmitted bytes"] * len(flows)
    found.equal(f"{point}: resent_bytes", total["resent_bytes"], retransmitted)
    statuses = sum(row["status_messages"] for row in flows)
    received = account.counters["Status Messages received"]
    _compare_statuses(found, point, statuses, received, account)
    if account.kind == UNICAST and account.reliable:
        (flow,) = flows
        requested = flow["requested_bytes"]
        (reader,) = readers
        found.within(f"{point}: requested", 0, sum(reader.lost_ranges.values()), requested)
    for row in here["images"]:
        _compare_image(found, point, row, account.offered_lengths, None)
    for gap in here["gaps"]:
        found.equal(f"{point}: gap at {gap['position']}: cause", gap["cause"], "behind capture")
        found.equal(f"{point}: time_to_repair_ns", gap["time_to_repair_ns"], None)


def _compare_statuses(
    found: Differences, point: str, printed: int, truth: int, account: Account
) -> None:
    """Compare a number of status messages.

    A reader of a multi-destination-cast requests SETUP frames before it knows any session, so these
    status messages belong to no stream.
    """
    most = _HIGHEST if account.kind == MDC else printed
    found.within(f"{point}: status_messages", printed, truth, most)


def _compare_geometry(found: Differences, row: dict[str, Any], account: Account) -> None:
    name = row["vantage_point"]
    found.equal(f"{name}: term_length", row["term_length"], account.term_length)
    found.equal(f"{name}: mtu", row["mtu"], account.mtu)
    found.equal(f"{name}: end_position", row["end_position"], account.end_position)


def _compare_reader(
    found: Differences, here: dict[str, list[dict[str, Any]]], account: Account, reader: Reader
) -> None:
    point = reader.host
    (stream,) = here["streams"]
    (flow,) = here["flows"]
    sums = {
        "data_frames": reader.forward_frames("out", "DATA"),
        "pad_frames": reader.forward_frames("out", "PAD"),
        "setups": reader.forward_frames("out", "SETUP"),
        "heartbeats": reader.forward_frames("out", "HEARTBEAT"),
        "naks": reader.feedback_frames("in", "NAK"),
    }
    for name, truth in sums.items():
        found.equal(f"{point}: {name}", stream[name], truth)
    statuses = reader.feedback_frames("in", "SM")
    _compare_statuses(found, point, stream["status_messages"], statuses, account)
    found.equal(f"{point}: naks sent", flow["naks"], reader.counters["NAKs sent"])
    for row in here["gaps"]:
        _compare_gap(found, row, account, reader)
    lost = sum(reader.lost_ranges.values())
    found.within(f"{point}: lost bytes, least", 0, flow["lost_bytes_min"], lost)
    most = lost + reader.displaced * ((account.mtu + 31) // 32 * 32)
    shown = _shown_bytes(account, reader)
    found.within(f"{point}: lost bytes, most", shown, flow["lost_bytes_max"], most)
    if account.kind != MDC and not reader.displaced:
        found.within(f"{point}: lost bytes", shown, flow["lost_bytes_max"], lost)
    # All frames of a packet are refused with the refused one.
    most = reader.refused_datagrams * 2 * account.term_length
    found.within(f"{point}: refused bytes", 0, flow["refused_bytes"], most)
    (image,) = here["images"]
    if account.reliable:
        _compare_geometry(found, stream, account)
        found.equal(f"{point}: messages", flow["messages"], len(reader.lengths))
        # Without a NAK, reliable and unreliable receivers cannot be distinguished.
        found.within(f"{point}: gap fills", flow["gap_fills_min"], 0, flow["gap_fills_max"])
        found.equal(f"{point}: rebuilt_position", flow["rebuilt_position"], account.end_position)
        _compare_image(found, point, image, reader.lengths, reader.crc32)
        rows = [(row["length"], row["crc32"]) for row in here["messages"]]
        truth = list(zip(reader.lengths, reader.checksums, strict=True))
        found.equal(f"{point}: rows of messages", rows, truth)
        taken = sum(flow[f"{name}_frames"] for name in ("first", "reordered"))
        found.within(f"{point}: frames", taken, len(reader.frames), taken + flow["resent_frames"])
    else:
        fills = reader.counters["Loss gap fills"]
        found.within(f"{point}: gap fills", flow["gap_fills_min"], fills, flow["gap_fills_max"])
        delivered = len(reader.lengths)
        found.within(f"{point}: messages", flow["messages_min"], delivered, flow["messages"])
    _compare_window(found, here["windows"][0], account, reader)


def _compare_gap(found: Differences, row: dict[str, Any], account: Account, reader: Reader) -> None:
    name = f"{reader.host}: gap at {row['position']}"
    end = row["position"] + row["length"]
    dropped = [
        each
        for each in reader.dropped
        if each.attempt == 1 and row["position"] <= each.position < end
    ]
    if row["outcome"] == "repaired" and row["cause"] == "before capture" and not reader.displaced:
        found.within(f"{name}: frames lost in it", 1, len(dropped), _HIGHEST)
    if dropped:
        earliest = min(each.time_ns for each in dropped)
        found.within(f"{name}: opened_ns", earliest, row["opened_ns"], _HIGHEST)
    if row["outcome"] == "repaired" and row["repaired_ns"] and account.reliable:
        read_ns = max(
            (each[2] for at, each in reader.frames.items() if row["position"] <= at < end),
            default=_HIGHEST,
        )
        found.within(f"{name}: repaired_ns", row["opened_ns"], row["repaired_ns"], read_ns)


def _compare_image(
    found: Differences, point: str, row: dict[str, Any], lengths: list[int], crc32: int | None
) -> None:
    found.equal(f"{point}: image messages", row["messages"], len(lengths))
    found.equal(f"{point}: message_bytes", row["message_bytes"], sum(lengths))
    found.equal(f"{point}: holes", (row["holes"], row["hole_bytes"]), (0, 0))
    found.equal(f"{point}: broken_messages", row["broken_messages"], 0)
    if crc32 is not None:
        found.equal(f"{point}: crc32", row["crc32"], crc32)


def _compare_window(
    found: Differences, row: dict[str, Any], account: Account, reader: Reader
) -> None:
    point = reader.host
    window = min(128 << 10, account.term_length // 2)
    found.equal(f"{point}: window_max", row["window_max"], window)
    consumed, seen_end = row["consumed_position"], max(reader.frames) if reader.frames else 0
    length = reader.frames[seen_end][0] if reader.frames else 0
    found.within(f"{point}: consumed_position", 0, consumed, max(seen_end + length, 0))
    fastest = 2 * account.delay_ns
    for name in ("repair_median_ns", "resend_median_ns"):
        if row[name] is not None and not reader.displaced and account.kind == UNICAST:
            found.within(f"{point}: {name}", fastest, row[name], _HIGHEST)


def _compare_link(
    found: Differences, row: dict[str, Any], account: Account, reader: Reader
) -> None:
    name = f"link to {reader.host}"
    truths = {
        "sent_frames": reader.forward_frames("in", "DATA", "PAD"),
        "arrived_frames": reader.forward_frames("out", "DATA", "PAD"),
        "lost_frames": len(reader.dropped),
        "lost_bytes": sum(each.length for each in reader.dropped),
        "copied_frames": reader.forward_frames("out", "DATA", "PAD")
        - reader.forward_frames("in", "DATA", "PAD")
        + len(reader.dropped),
        "unsent_frames": 0,
        "control_lost": reader.lost_feedback,
        "status_lost": reader.lost_statuses,
        "is_corrected": False,
    }
    for key, truth in truths.items():
        found.equal(f"{name}: {key}", row[key], truth)
    most = _HIGHEST if account.kind == MDC else row["control_sent"]
    control = reader.feedback_frames("in", "SM", "NAK")
    found.within(f"{name}: control_sent", row["control_sent"], control, most)
    found.within(f"{name}: reordered", 0, row["reordered_frames"], reader.displaced)
    found.within(
        f"{name}: delay_min_ns", account.delay_ns, row["delay_min_ns"], account.delay_ns + 1_000_000
    )
    offset, error = row["clock_offset_ns"], row["clock_error_ns"]
    if offset is not None:
        found.within(f"{name}: clock offset", offset - error, 0, offset + error)
