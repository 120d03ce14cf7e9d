"""The send and receive channel endpoints as the conductor manages them, including their sockets."""
