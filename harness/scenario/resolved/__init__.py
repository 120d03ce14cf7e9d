"""The case: a scenario in which all defaults are filled in and all references are resolved."""
