"""Gates: conditions of the harness without which a run proves nothing."""
