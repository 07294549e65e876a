"""A tuned pipeline to take away: one Python file that needs nothing but the standard library, or its spec."""

from rag_core.export.assemble import ADAPTERS, export_filter, export_spec, fates

__all__ = ["ADAPTERS", "export_filter", "export_spec", "fates"]
