"""What every gate and check is made of: evidence, findings, outcomes."""
