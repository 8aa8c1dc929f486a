"""What the pump decides by: folds of the log that are kept in memory."""
