"""Core types of all gates and checks: evidence, findings, outcomes."""
