"""The documents of the wire: OpenAPI, AsyncAPI and a page to read them, made of the tables of the server."""
