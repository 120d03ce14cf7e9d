"""The settings of an archive, with Aeron's names and defaults.

archive_settings    all settings, checked together
setting             kinds of settings that only an archive has
"""
