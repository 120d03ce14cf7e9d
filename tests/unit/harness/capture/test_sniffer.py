"""The command line of the capture, and its output."""

from windtunnel.harness.artifact.host.host_facts import CaptureFacts
from windtunnel.harness.capture import sniffer

LISTENING = (
    "tcpdump: listening on eth0, link-type EN10MB (Ethernet), snapshot length 262144 bytes\n"
)
END = "1200 packets captured\n1200 packets received by filter\n0 packets dropped by kernel\n"


def test_records_all_udp_of_the_interface_in_nanoseconds_and_full_length():
    command = sniffer.command("eth7", "/x/a.pcap")
    assert command[0] == "tcpdump"
    assert command[command.index("-i") + 1] == "eth7"
    assert command[command.index("-w") + 1] == "/x/a.pcap"
    assert command[command.index("-s") + 1] == "0"
    assert "--time-stamp-precision=nano" in command
    assert "--immediate-mode" not in command
    assert command[-1] == "udp"


def test_knows_when_the_capture_has_begun():
    assert sniffer.READY in LISTENING


def so_far(taken, received):
    packets = "packet" if taken == 1 else "packets"
    reported = f"tcpdump: {taken} {packets} captured, {received} {packets} received by filter"
    return f"{reported}, 0 packets dropped by kernel"


def test_a_complete_capture_may_be_ended_at_once():
    for taken in (20, 1, 0):
        settling = sniffer.Settling(100.0)
        assert not settling.is_over(100.0)
        settling.update(LISTENING, 100.0)
        settling.update(END.splitlines()[0], 100.0)
        assert not settling.is_over(100.0)
        settling.update(so_far(taken, taken), 100.1)
        assert settling.is_over(100.1)


def test_a_capture_that_lags_is_waited_for_while_it_makes_progress():
    """A capture got eleven packets in two blocks, the second block a second after the first."""
    settling = sniffer.Settling(100.0)
    settling.update(so_far(4_316, 4_327), 100.02)
    settling.update(so_far(4_316, 4_327), 100.26)
    settling.update(so_far(4_325, 4_327), 100.28)
    settling.update(so_far(4_325, 4_327), 100.28 + sniffer.SETTLE_S - 0.01)
    assert not settling.is_over(101.38)
    settling.update(so_far(4_327, 4_327), 101.38)
    assert settling.is_over(101.38)


def test_a_capture_without_progress_is_waited_for_during_one_block_timeout():
    settling = sniffer.Settling(100.0)
    for now_s in (100.0, 100.5, 100.0 + sniffer.SETTLE_S - 0.01):
        settling.update(so_far(19, 20), now_s)
        assert not settling.is_over(now_s)
    settling.update(so_far(19, 20), now_s := 100.0 + sniffer.SETTLE_S + 0.01)
    assert settling.is_over(now_s)


def test_a_silent_capture_is_not_considered_complete():
    """It may be stopped, as one was for two seconds on a busy machine."""
    for reported in ((), (so_far(19, 20),)):
        settling = sniffer.Settling(100.0)
        for line in reported:
            settling.update(line, 100.0)
        end_s = 100.0 + sniffer.SETTLES_MAX * sniffer.SETTLE_S
        assert not settling.is_over(end_s - 0.01)
        assert settling.is_over(end_s)


def test_the_wait_for_an_endless_capture_is_limited():
    settling = sniffer.Settling(100.0)
    for index in range(1_000):
        now_s = 100.0 + index * sniffer.SETTLE_S / 2
        if settling.is_over(now_s):
            break
        settling.update(so_far(index, index + 5), now_s)
    assert now_s == 100.0 + sniffer.SETTLES_MAX * sniffer.SETTLE_S


def test_a_packet_that_comes_late_is_waited_for():
    settling = sniffer.Settling(100.0)
    settling.update(so_far(5, 5), 100.02)
    settling.update(so_far(5, 6), 100.04)
    assert not settling.is_over(100.04)


def test_intermediate_reports_are_not_the_closing_statistics():
    reported = (
        "tcpdump: 9 packets captured, 9 packets received by filter, 0 packets dropped by kernel\n"
    )
    assert sniffer.statistics(LISTENING + reported + "\n") is None
    assert sniffer.statistics(LISTENING + reported + "\n" + END) == CaptureFacts(1200, 0)


def test_reads_the_closing_statistics():
    assert sniffer.statistics(LISTENING + END) == CaptureFacts(1200, 0)


def test_reads_statistics_of_a_single_packet():
    text = "1 packet captured\n1 packet received by filter\n0 packets dropped by kernel\n"
    assert sniffer.statistics(text) == CaptureFacts(1, 0)


def test_drops_of_the_kernel_are_counted():
    assert sniffer.statistics(END.replace("0 packets d", "7 packets d")) == CaptureFacts(1200, 7)


def test_a_packet_left_in_the_buffer_is_a_dropped_one():
    assert sniffer.statistics(END.replace("1200 packets r", "1203 packets r")) == CaptureFacts(
        1200, 3
    )


def test_a_packet_from_before_the_filter_is_not_a_lost_packet():
    """An ARP request in a container was counted as received, although the filter excludes it."""
    first, end = so_far(0, 2) + "\n", END.replace("1200 packets r", "1202 packets r")
    assert sniffer.statistics(LISTENING + first + end) == CaptureFacts(1200, 0)
    late = so_far(1_190, 1_202) + "\n" + so_far(1_200, 1_202) + "\n"
    assert sniffer.statistics(LISTENING + first + late + end) == CaptureFacts(1200, 0)


def test_a_packet_left_in_the_buffer_is_a_dropped_one_whatever_came_before_the_filter():
    end = END.replace("1200 packets r", "1203 packets r")
    late = so_far(1_200, 1_203) + "\n"
    for missing, dropped in ((0, 3), (1, 2), (2, 1)):
        first = so_far(0, missing) + "\n"
        assert sniffer.statistics(LISTENING + first + end) == CaptureFacts(1200, dropped)
        assert sniffer.statistics(LISTENING + first + late + end) == CaptureFacts(1200, dropped)


def test_a_packet_from_before_the_filter_that_was_read_excuses_nothing():
    reported = f"{so_far(0, 3)}\n{so_far(5, 5)}\n{so_far(1_200, 1_201)}\n"
    end = END.replace("1200 packets r", "1201 packets r")
    assert sniffer.statistics(LISTENING + reported + end) == CaptureFacts(1200, 1)


def test_recognises_a_report():
    assert sniffer.is_report(so_far(0, 0))
    assert sniffer.is_report(so_far(1, 1))
    assert not sniffer.is_report(LISTENING)
    assert not any(sniffer.is_report(line) for line in END.splitlines())


def test_drops_of_the_interface_are_counted_as_well():
    text = END.replace("0 packets d", "2 packets d") + "5 packets dropped by interface\n"
    assert sniffer.statistics(text) == CaptureFacts(1200, 7)
    assert sniffer.statistics("1 packet captured\n1 packet dropped by interface\n") is None


def test_there_are_no_statistics_before_the_end():
    assert sniffer.statistics(LISTENING) is None
    assert sniffer.statistics(LISTENING + END.splitlines()[0]) is None
    assert sniffer.statistics("") is None


def test_the_first_report_may_show_that_a_block_was_just_read():
    settling = sniffer.Settling(100.0)
    settling.update(so_far(9, 11), 100.6)
    settling.update(so_far(9, 11), 100.6 + sniffer.SETTLE_S - 0.01)
    assert not settling.is_over(100.6 + sniffer.SETTLE_S)
    settling.update(so_far(9, 11), now_s := 100.6 + sniffer.SETTLE_S + 0.01)
    assert settling.is_over(now_s)
