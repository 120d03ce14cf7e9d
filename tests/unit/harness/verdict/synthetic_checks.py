"""The checks of a synthetic run: of a reliable stream, of an unreliable one, and those that its
evidence does not decide.
"""

from windtunnel.harness.verdict.registry import CHECKS

RELIABLE_CHECKS = (
    "delivered_once",
    "delivered_unbroken",
    "positions_covered",
    "image_log_equals_publication",
    "naks_only_for_gaps",
    "naks_paced",
    "naks_in_time",
    "retransmits_only_if_asked",
    "naks_and_retransmits_agree",
    "retransmits_identical",
    "counters_agree_with_packets",
    "sends_within_window",
    "status_messages_on_time",
    "status_messages_backed",
    "rcv_pos_reaches_end",
    "eos_reaches_end",
    "rcv_pos_monotonic",
    "rcv_hwm_from_wire",
    "invalid_packets_zero",
    "invalid_packets_counted",
    "naks_answered_whole",
    "retransmits_spaced",
    "retransmits_counted",
    "round_trips_measured",
    "snd_lmt_follows_status",
    "pub_lmt_follows_snd_pos",
    "setups_until_answered",
    "group_receivers_counted",
    "status_messages_consumed",
    "status_messages_in_strides",
    "over_under_runs_counted",
    "gap_counters_agree",
    "loss_report_agrees",
    "feedback_spaced",
    "transports_counted",
)
UNRELIABLE_CHECKS = (
    "delivered_intact",
    "positions_covered",
    "image_log_equals_publication",
    "pad_only_where_lost",
    "no_naks",
    "counters_agree_with_packets",
    "sends_within_window",
    "status_messages_on_time",
    "status_messages_backed",
    "rcv_pos_reaches_end",
    "eos_reaches_end",
    "rcv_pos_monotonic",
    "rcv_hwm_from_wire",
    "invalid_packets_zero",
    "gap_fills_counted",
    "gap_fills_cover_nothing",
    "gap_fills_prompt",
    "gap_counters_agree",
    "loss_report_agrees",
    "feedback_spaced",
    "transports_counted",
)
OF_RESTS = ("heartbeats_in_silence", "delivered_in_parts")
"""Checks of streams that pause, or whose image is replaced; neither happens in this run."""
OF_ARCHIVES = ("recording_equals_published", "merged_into_live")
"""Checks of recordings and merges; this stream is not recorded."""
OF_LABELS = (
    *("counters_identify_streams", "back_pressure_counted", "cubic_windows_shrink"),
    *("mapped_bytes_counted", "heartbeats_of_clients", "system_counters_add_up"),
)
"""Checks of descriptions of counters, and of counters and windows that this run does not have."""
OF_RULES = ("expect_frames",)
"""Checks that name a rule of their scenario."""
_ALL_CHECKS = {
    *(*RELIABLE_CHECKS, *UNRELIABLE_CHECKS, *OF_RESTS, *OF_ARCHIVES, *OF_LABELS, *OF_RULES),
}
assert set(CHECKS) == _ALL_CHECKS
