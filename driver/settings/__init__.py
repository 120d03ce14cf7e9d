"""Settings of a process: kinds of values, property files, precedence of sources."""
