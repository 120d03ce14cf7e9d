"""Image state shared by receiver and conductor: loss detection, NAKs, congestion control."""
