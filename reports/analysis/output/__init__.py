"""Tables, summary lines and pages."""
