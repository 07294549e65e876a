"""Embeddings, collections and exact or approximate search over them."""
