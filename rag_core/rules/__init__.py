"""Chunk-side rules: what a query must hold for a chunk to be returned, decided by words and numbers alone."""
