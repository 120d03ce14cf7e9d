"""Compiles the kernels of a lab's processes before the lab is built."""
