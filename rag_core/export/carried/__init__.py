"""The parts an exported filter is put together from. Standard library only, Python 3.9 and later; see assemble.py."""
