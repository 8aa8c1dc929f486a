"""The handlers of this organism; organism.yaml says which listener runs which."""
