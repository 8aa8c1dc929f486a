"""What is measured of the product itself; each is run as a module in a process of its own and prints one JSON line."""
