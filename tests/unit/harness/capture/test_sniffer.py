"""The capture's command and the reading of its last words."""

from harness.artifact.host_facts import CaptureFacts
from harness.capture import sniffer

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


def test_drops_of_the_interface_are_counted_as_well():
    text = END.replace("0 packets d", "2 packets d") + "5 packets dropped by interface\n"
    assert sniffer.statistics(text) == CaptureFacts(1200, 7)
    assert sniffer.statistics("1 packet captured\n1 packet dropped by interface\n") is None


def test_there_are_no_statistics_before_the_end():
    assert sniffer.statistics(LISTENING) is None
    assert sniffer.statistics(LISTENING + END.splitlines()[0]) is None
    assert sniffer.statistics("") is None
