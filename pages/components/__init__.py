"""What pages draw with: widgets and charts as `show(value, key)`, cached resources, the keys of shared state."""
