"""The conductor's part of the send and receive channel endpoints, which includes their sockets."""
