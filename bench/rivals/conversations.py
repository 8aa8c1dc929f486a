"""The same conversation, kept by others: langgraph's SQLite checkpointer, and the SQLite session of openai-agents.

Both files are in WAL mode with ``synchronous=FULL``, where the library lets us say so. The model is scripted. The
headline is what a turn of langgraph takes at the end; the other figures bear the names of the two.
"""

import contextlib
import tempfile
import time
from pathlib import Path

import uvloop
from agents import Agent, Model, ModelResponse, RunConfig, Runner, SQLiteSession, Usage
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from bench.load import Measurement, arguments
from bench.talk import ANSWER, QUICK_TURNS, TURNS, at_begin, at_end, disk_bytes, question


def answer(_: MessagesState) -> dict:
    return {"messages": [AIMessage(ANSWER)]}


async def with_langgraph(folder: Path, turns: int) -> dict[str, float]:
    graph = StateGraph(MessagesState)
    graph.add_node("talker", answer)
    graph.add_edge(START, "talker")
    graph.add_edge("talker", END)
    config, taken = {"configurable": {"thread_id": "1"}}, []
    async with AsyncSqliteSaver.from_conn_string(str(folder / "checkpoints.sqlite")) as saver:
        await saver.setup()
        await saver.conn.execute("PRAGMA synchronous=FULL")
        app = graph.compile(checkpointer=saver)
        for number in range(turns):
            begun = time.perf_counter()
            await app.ainvoke({"messages": [HumanMessage(question(number))]}, config, durability="sync")
            taken.append(time.perf_counter() - begun)
    return figures("langgraph", taken, disk_bytes(folder) / turns)


class Scripted(Model):
    """Says ``ANSWER``."""

    async def get_response(self, *_: object, **__: object) -> ModelResponse:
        text = ResponseOutputText(text=ANSWER, type="output_text", annotations=[])
        said = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *_: object, **__: object) -> object:
        raise NotImplementedError


async def with_openai_agents(folder: Path, turns: int) -> dict[str, float]:
    agent = Agent(name="talker", instructions="Be brief.", model=Scripted())
    settings, taken = RunConfig(tracing_disabled=True), []
    with contextlib.closing(SQLiteSession("1", folder / "session.sqlite")) as session:
        for number in range(turns):
            begun = time.perf_counter()
            await Runner.run(agent, question(number), session=session, run_config=settings)
            taken.append(time.perf_counter() - begun)
    return figures("openai_agents", taken, disk_bytes(folder) / turns)


def figures(name: str, taken: list[float], bytes_a_turn: float) -> dict[str, float]:
    return {
        f"{name}_ms": at_end(taken),
        f"{name}_first_ms": at_begin(taken),
        f"{name}_kib_a_turn": bytes_a_turn / 1024,
    }


async def measure(turns: int) -> Measurement:
    measured: dict[str, float] = {}
    for keeps in (with_langgraph, with_openai_agents):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            measured |= await keeps(Path(folder), turns)
    return Measurement("conversation", "ms", measured["langgraph_ms"], measured)


if __name__ == "__main__":
    print(uvloop.run(measure(QUICK_TURNS if arguments(__doc__).quick else TURNS)).line())
