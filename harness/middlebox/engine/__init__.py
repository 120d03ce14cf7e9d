"""The engine, which applies fault rules to each frame of each datagram; kernels only, no
sockets.
"""
