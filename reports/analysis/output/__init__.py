"""Output of an analysis: tables, summary lines and pages."""
