"""The sender: SETUP, data, heartbeats and retransmits; flow control and NAK handling."""
