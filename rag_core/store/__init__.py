"""What a person's work is kept in: labels, in one SQLite file per workspace, and their import and export.

Import the modules by name; this package imports nothing, so that `import rag_core.store` stays quick.
"""
