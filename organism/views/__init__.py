"""What is made of the events: read models, their folds, and the port by which their rows are read."""
