"""The choice depends on the seed alone, and every choice works."""

from windtunnel.harness.middlebox.rule_compiler import compile_rules
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.simulator.swarm.choice import IDLE_MAX_NS, choose

REFUSED = {"version", "session-id", "stream-id", "term-id"}


def test_equal_seeds_make_equal_choices():
    assert choose(5) == choose(5)
    assert choose(5).text == choose(5).text
    assert choose(5) != choose(6)


def test_text_is_one_line_with_every_fault():
    for seed in range(50):
        choice = choose(seed)
        assert "\n" not in choice.text
        assert choice.text.count("%") >= len(choice.case.faults)
        assert all(each.channel.split("|")[1] in choice.text for each in choice.case.traffic)
        assert all(f" {way} " in choice.text for way in choice.paths)


def test_the_case_agrees_with_its_channels():
    for seed in range(200):
        for traffic in choose(seed).case.traffic:
            channel, receive = parse_channel(traffic.channel), parse_channel(traffic.receive)
            assert channel.term_length == traffic.term_length
            assert channel.mtu == traffic.mtu
            assert channel.initial_term_id == traffic.initial_term_id
            assert channel.initial_position == traffic.initial_position
            assert receive.reliable == traffic.reliable
            assert receive.receiver_window_bytes == traffic.receiver_window_bytes


def modes_of(traffic):
    """Return whether a stream's sender and its receiver have a mode of loss recovery."""
    return "windtunnel." in traffic.channel, "windtunnel." in traffic.receive


def test_with_modes_all_pairs_of_senders_and_receivers_occur_and_nothing_else_changes():
    found = set()
    for seed in range(60):
        plain, chosen = choose(seed), choose(seed, modes=True)
        assert chosen == choose(seed, modes=True)
        for before, after in zip(plain.case.traffic, chosen.case.traffic, strict=True):
            assert after.channel.startswith(before.channel)
            assert after.receive.startswith(before.receive)
            update = {"channel": before.channel, "receive": before.receive}
            assert after.model_copy(update=update) == before
            assert modes_of(before) == (False, False)
            channel, receive = parse_channel(after.channel), parse_channel(after.receive)
            assert bool(channel.retransmit_ranges) == modes_of(after)[0]
            has_gap_filling = receive.gap_fill_datagrams is not None
            expected = receive.nak_all_gaps is True if after.reliable else has_gap_filling
            assert expected == modes_of(after)[1]
            found.add((after.reliable, *modes_of(after)))
    assert len(found) == 8


def test_messages_fit_and_rules_compile():
    for seed in range(200):
        case = choose(seed).case
        assert len(compile_rules(case)[0]) == len(case.faults)
        for traffic in case.traffic:
            assert 1 <= traffic.shortest_bytes <= traffic.longest_bytes
            assert traffic.longest_bytes <= traffic.term_length // 8
            assert traffic.mtu <= traffic.receiver_window_bytes <= traffic.term_length // 2


def test_the_number_of_frames_is_about_the_requested_one():
    choice = choose(3, frames=1_000)
    assert choice.frames == 1_000
    assert choose(3).case.faults == choice.case.faults


def test_the_pace_is_within_that_of_real_agents():
    for seed in range(200):
        choice = choose(seed)
        assert choice.turn_ns <= choice.idle_max_ns <= IDLE_MAX_NS
        assert len(choice.readers) == len(choice.bursts) == len(choice.case.traffic)
        assert all(each.visit_frames > 0 for each in choice.readers)


def test_damage_and_forgery_are_detectable_by_a_driver():
    for seed in range(400):
        for fault in choose(seed).case.faults:
            if fault.action == "corrupt":
                assert fault.field in {"payload", "reserved"} or fault.field in REFUSED
            assert all(
                not each.is_same_session
                or not each.is_same_stream
                or each.version
                or each.type in {"DATA", "PAD", "NAK"}
                for each in fault.forged
            )


def test_a_compared_trial_has_the_faults_of_the_one_with_the_real_driver():
    # A rule that is left out changes the random draws of those after it.
    chosen = [
        (choose(seed, drivers="pyaeron"), choose(seed, is_compared=True), choose(seed))
        for seed in range(1500, 1560)
    ]
    assert all(real.case.faults == ours.case.faults for real, ours, _ in chosen)
    assert any(ours.case.faults != alone.case.faults for _, ours, alone in chosen)
