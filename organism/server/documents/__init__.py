"""The documents of the wire: OpenAPI, AsyncAPI, a page to read them, and the types of TypeScript.

All four are made of the route table, the frame table, the command table and the records of the shapes; nothing is
written down a second time.
"""
