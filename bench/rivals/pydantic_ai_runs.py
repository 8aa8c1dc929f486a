"""pydantic-ai: what a run of two model calls and a tool takes, and how many end in a second with 32 under way.

Nothing of a run is kept: a crash loses it. The answers are streamed, as in the product, and its telemetry is off.

Made as fast as its own settings allow: uvloop, one agent and one HTTP client for all runs.
"""

import uvloop
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from bench.agent_runs import hold_answer, measure_runs
from bench.load import Measurement, arguments
from bench.peer import MODEL, ONE_TOOL, peer


async def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


async def measure(seconds: float) -> Measurement:
    with peer(ONE_TOOL) as url:
        client = AsyncOpenAI(base_url=url, api_key="-", max_retries=0)
        model = OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client))
        agent = Agent(model, instructions="Be brief.", tools=[add])

        async def run() -> None:
            async with agent.run_stream("Hello!") as answer:
                hold_answer(await answer.get_output())

        return await measure_runs("pydantic-ai", run, seconds)


if __name__ == "__main__":
    print(uvloop.run(measure(arguments(__doc__).seconds)).line())
