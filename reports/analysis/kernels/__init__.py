"""Kernels of the capture analysis."""
