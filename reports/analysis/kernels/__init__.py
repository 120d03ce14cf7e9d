"""The compiled (numba) kernels of the capture analysis."""
