"""Loss detection, NAKs, congestion control, and the image state that receiver and conductor
share.
"""
