"""``organism graph``."""

from __future__ import annotations

from organism.cli.client import Client
from organism.cli.options import Graph
from organism.cli.show import out, print_json, table


def graph(options: Graph) -> None:
    """Each listener and whom it may write to unasked, as lines, data or a diagram."""
    client = Client(options)
    if options.mermaid:
        out().print(client.text("/organism/graph", {"format": "mermaid"}).rstrip())
        return
    found = client.get("/organism/graph")
    if options.json:
        print_json(found)
        return
    peers: dict[str, list[str]] = {node["name"]: [] for node in found["nodes"]}
    for edge in found["edges"]:
        peers[edge["from"]].append(edge["to"])
    rows = ((node["name"], node["kind"], ", ".join(peers[node["name"]]) or "-") for node in found["nodes"])
    table(("NAME", "KIND", "MAY WRITE TO"), rows, "there are no listeners")
