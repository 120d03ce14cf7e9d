"""The settings of a process: types of values, property files, and the precedence of sources."""
