"""Labels, a place of the rail: is this chunk relevant, and how much is known?"""
