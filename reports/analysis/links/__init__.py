"""Analysis of links between vantage points: loss, duplicates, reordering and delay of each link."""
