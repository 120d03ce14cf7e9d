"""Kernels of the analysis."""
