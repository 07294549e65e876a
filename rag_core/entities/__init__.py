"""Entity filter: which entities of a large structure does a query name, and only their part of it."""
