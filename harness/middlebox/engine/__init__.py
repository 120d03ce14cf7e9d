"""The middlebox engine: applies fault rules to the frames of datagrams, without sockets."""
