"""The state of an image that receiver and conductor share, and the rules that it follows."""
