"""Pages of what was measured: benchmarks, loss recovery, and calibrations of impairments."""
