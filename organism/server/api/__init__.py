"""The REST resources, one file each: endpoints, then their part of the route table."""
