"""A run as one HTML file to send to a colleague: it opens offline and asks nothing of any network."""

from rag_core.report.page import report_html

__all__ = ["report_html"]
