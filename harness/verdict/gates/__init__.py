"""Gates: conditions that the test harness must meet, because otherwise a run proves nothing."""
