"""The one way to talk to a model: prompts, named endpoints, the client, judges that store answers, runs in a budget."""
