"""Loss detection, NAKs, congestion control, and the image state that two agents share."""
