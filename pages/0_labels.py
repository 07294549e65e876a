"""A link to Labels on a server that nobody visited yet: see rail.first_visit."""

from pages import rail

rail.first_visit("labels")
