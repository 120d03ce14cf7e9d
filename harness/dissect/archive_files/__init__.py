"""The files of an Aeron archive: catalog, segment files."""
