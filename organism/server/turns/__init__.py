"""A turn of an agent: begun, followed, answered and charged in one way, whatever surface it comes by."""
