"""The configuration: organism.yaml and the modules that it names become frozen settings, or every fault at once."""
