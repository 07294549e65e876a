"""Labels, a place of the rail: is this chunk relevant, and how much is known?"""

WANTED = "labels.wanted"  # session key: pairs that another view or page wants labelled next, and why
