"""The case: a scenario with every default filled in and every reference resolved."""
