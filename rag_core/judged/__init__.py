"""Judges on labelled queries: what a page and a command share to compare, simulate, repeat and answer with models."""
