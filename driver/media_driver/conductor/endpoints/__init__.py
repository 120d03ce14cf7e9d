"""The conductor's part of the send and receive channel endpoints, including their sockets."""
