"""From the chunks a pipeline keeps to a model's answer: checked, and why it is wrong."""
