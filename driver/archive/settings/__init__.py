"""The settings of an archive, with the names and defaults of Aeron's archive.

archive_settings    all settings, checked together
setting             kinds of settings that only an archive has
"""
