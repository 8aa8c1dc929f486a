"""The handlers that organism.yaml names."""
