"""The sender agent: SETUP, data, heartbeats, retransmits, flow control and NAK handling."""
