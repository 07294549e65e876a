"""Every schema the label store has had, one numbered step each, run when the store is opened."""
