"""Headroom: what is there to gain, and where?"""

from pages.components import header

header.show("Headroom", "What is there to gain, and where?", "")
