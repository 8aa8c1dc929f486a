"""The vocabulary: ids, envelope, commands, events, and what everyone needs of them. Standard library only."""
