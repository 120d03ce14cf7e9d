"""Documents about a run, a suite, a matrix, a benchmark or a calibration as a whole."""
