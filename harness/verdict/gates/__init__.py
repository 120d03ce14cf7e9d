"""Gates: conditions on the harness without which a run proves nothing."""
