"""The conductor's channel endpoints of sender and receiver, and their sockets."""
