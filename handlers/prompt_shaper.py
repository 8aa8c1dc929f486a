"""A2, the prompt shaper, as an actor: it looks at a prompt in the making, and labels it.

Which labels there are, and what the model is told, stands in config/agents/A2/v1.json: a new label is an edit of that
file, a new version another file, and neither is a line here.
"""

from dataclasses import asdict, dataclass

from organism import AgentFactory, HandlerMetadata, HandlerResponse


@dataclass
class PromptDraft:
    """A prompt in the making: what is to be done, what for, and what is known."""

    task: str
    purpose: str = ""
    context: str = ""


@dataclass
class PromptLabels:
    """Who should answer, for whom, how, how long, and how sure the shaper is of that."""

    system: str
    audience: str
    tone: str
    response_depth: str
    confidence: str


async def shape(payload: PromptDraft, metadata: HandlerMetadata) -> HandlerResponse:
    """Have a model choose the labels. An answer that does not fit is a dead letter that names every field."""
    draft = asdict(payload)
    prompt = AgentFactory.create("A2", "v1", draft)
    messages, response_format = prompt.compose(draft)
    completion = await metadata.complete(
        messages,
        model=prompt.model_name,
        response_format=response_format,
        temperature=prompt.temperature,
        max_tokens=prompt.max_output_tokens,
    )
    return HandlerResponse.respond(PromptLabels(**prompt.parse_and_validate(completion)))
