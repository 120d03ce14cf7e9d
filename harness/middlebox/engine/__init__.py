"""The engine, which applies fault rules to the frames of datagrams and uses no sockets."""
