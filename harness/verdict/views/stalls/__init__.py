"""What a stream waited for: the stalls of its subscribers, and the windows of its receivers."""
