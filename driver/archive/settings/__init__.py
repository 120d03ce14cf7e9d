"""What an archive was told: its settings, with Aeron's names and defaults.

    setting             how one setting is written, read and bounded
    archive_settings    all of them, checked as a whole
    given               environment, property files and -D options, the later winning

Knows nothing of what a setting does.
"""
