"""The sender agent, which sends SETUP frames, data, heartbeats and retransmits."""
