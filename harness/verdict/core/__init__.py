"""Types that all gates and checks use: evidence, findings and outcomes."""
