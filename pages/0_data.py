"""A link to Data on a server that nobody visited yet: see rail.first_visit."""

from pages import rail

rail.first_visit("data")
