"""Lists from elsewhere: any Python function that searches, and runs in TREC's form."""
