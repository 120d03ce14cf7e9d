"""What sound drivers do in a scenario, measured over many seeds, and the comparison with a run."""
