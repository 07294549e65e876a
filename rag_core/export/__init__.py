"""A tuned pipeline as code to take away: one Python file that needs nothing but the standard library."""

from rag_core.export.assemble import export_filter

__all__ = ["export_filter"]
