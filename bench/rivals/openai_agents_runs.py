"""openai-agents: what a run of two model calls and a tool takes, and how many end in a second with 32 under way.

Nothing of a run is kept: a crash loses it. The answers are streamed, as in the product, and its tracing, which would
send each run to a server, is off.

Made as fast as its own settings allow: uvloop, one agent and one HTTP client for all runs.
"""

import uvloop
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from bench.agent_runs import hold_answer, measure_runs
from bench.load import Measurement, arguments
from bench.peer import MODEL, ONE_TOOL, peer


@function_tool
async def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


async def measure(seconds: float) -> Measurement:
    set_tracing_disabled(True)
    with peer(ONE_TOOL) as url:
        client = AsyncOpenAI(base_url=url, api_key="-", max_retries=0)
        model = OpenAIChatCompletionsModel(MODEL, openai_client=client)
        agent = Agent(name="thinker", instructions="Be brief.", model=model, tools=[add])

        async def run() -> None:
            answer = Runner.run_streamed(agent, "Hello!")
            async for _ in answer.stream_events():
                pass
            hold_answer(answer.final_output)

        return await measure_runs("openai-agents", run, seconds)


if __name__ == "__main__":
    print(uvloop.run(measure(arguments(__doc__).seconds)).line())
