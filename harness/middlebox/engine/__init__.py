"""The engine: applies fault rules to each frame of each datagram. Kernels only, no sockets."""
