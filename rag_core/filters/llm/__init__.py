"""The LLM filter: asks, reads the answers, decides; its stage is in stage.py."""
