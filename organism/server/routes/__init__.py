"""One file a resource: its endpoints and, at its end, its part of the route table. They know nothing of each other."""
