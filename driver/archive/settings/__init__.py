"""What an archive was told: its settings, with Aeron's names and defaults.

    setting             the kinds that only an archive has
    archive_settings    all settings, checked as a whole

Knows nothing of what a setting does.
"""
