"""Documents about a whole run, suite, matrix, benchmark or calibration."""
