"""Parsers for the files of an Aeron archive: catalog and segment files."""
