"""Output of a capture analysis: tables, summary lines and HTML pages."""
