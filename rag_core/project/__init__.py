"""What a person works on: a project (source, questions, labels, pipelines, baseline, split, ledger) and its session.

Pages and commands open a project by name and ask its session; nothing else opens handles or joins labels to lists.
"""
