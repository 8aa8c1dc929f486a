// The AI SDK, in the version that the argument names: chat by two of its providers, and `useChat`'s transport.
import assert from "node:assert/strict";
import { z } from "zod";
import { asked, check, hello, order, refuse, tell, token, url } from "./checks.mjs";

const major = process.argv[2];
const ai = await import(`ai-${major}`);
const { createOpenAICompatible } = await import(`@ai-sdk/openai-compatible-${major}`);
const { createOpenAI } = await import(`@ai-sdk/openai-${major}`);
const given = { name: "organism", baseURL: `${url}/v1`, apiKey: token, includeUsage: true, supportsStructuredOutputs: true };
const compatible = createOpenAICompatible(given);
const models = { "openai-compatible": compatible("m"), openai: createOpenAI(given).chat("m") };
const find = ai.tool({ description: "Finds an order", inputSchema: z.object({ id: z.number() }), execute: () => "paid" });
const loop = { tools: { find }, stopWhen: ai.stepCountIs?.(5) ?? ai.isStepCount(5) };
const city = z.object({ name: z.string() });

/** The parts of a stream; an error in it is raised. */
async function partsOf(options) {
  const stream = ai.streamText({ messages: hello, onError: () => {}, ...options });
  const parts = [];
  for await (const part of stream.fullStream ?? stream.stream) {
    if (part.type === "error") throw part.error;
    parts.push(part);
  }
  return { parts, stream };
}

async function raised(coming) {
  const error = await coming.then(JSON.stringify, (error) => error);
  assert.ok(ai.APICallError.isInstance(error), `no APICallError, but ${error}`);
  return error;
}

for (const [provider, model] of Object.entries(models)) {
  await check(`${provider}: generateText gives text, finish and usage`, async () => {
    await tell({ text: "Hello, you." });
    const { text, finishReason, usage } = await ai.generateText({ model, messages: hello });
    assert.deepEqual([text, finishReason, usage.totalTokens], ["Hello, you.", "stop", 10]);
  });

  await check(`${provider}: streamText gives the same, and no error`, async () => {
    await tell({ text: "Hello, you." });
    const { stream } = await partsOf({ model });
    const usage = await stream.usage;
    assert.deepEqual([await stream.text, await stream.finishReason, usage.totalTokens], ["Hello, you.", "stop", 10]);
  });

  await check(`${provider}: generateText calls a tool and goes on`, async () => {
    await tell({ calls: [order] }, { text: "It is paid." });
    const { text, steps } = await ai.generateText({ model, messages: hello, ...loop });
    assert.deepEqual([text, steps.length], ["It is paid.", 2]);
    assert.match((await asked()).at(-1).messages.at(-1).content, /paid/);
  });

  await check(`${provider}: streamText calls a tool and goes on`, async () => {
    await tell({ text: "I look.", calls: [order] }, { text: "It is paid." });
    const { parts, stream } = await partsOf({ model, ...loop });
    assert.ok(parts.some((part) => part.type === "tool-result"), "the tool never ran");
    assert.equal(await stream.text, "It is paid.");
  });

  await check(`${provider}: an object is generated, and streamed`, async () => {
    await tell({ text: '{"name":"Kiel"}', times: 0 });
    const output = ai.Output.object({ schema: city });
    const wanted = { model, messages: hello, output, experimental_output: output };
    const whole = await ai.generateText(wanted);
    assert.deepEqual(whole.output ?? whole.experimental_output, { name: "Kiel" });
    assert.equal((await asked())[0].response_format.type, "json_schema");
    assert.equal(await (await partsOf(wanted)).stream.text, '{"name":"Kiel"}');
  });

  await check(`${provider}: a context that is too long is an APICallError that is not repeated`, async () => {
    await tell(refuse(400, { message: "This model's maximum context length is 100000 tokens." }));
    const error = await raised(ai.generateText({ model, messages: hello }));
    assert.deepEqual([error.statusCode, error.isRetryable], [400, false]);
    assert.match(error.responseBody, /context_length_exceeded/);
    await raised(partsOf({ model }));
    assert.equal((await asked()).length, 2);
  });

  await check(`${provider}: a filtered answer and a cut one have their finish`, async () => {
    await tell({ text: "So far", finish: "content_filter", times: 2 }, { text: "Cut", finish: "length" });
    for (const finish of ["content-filter", "content-filter", "length"]) {
      const { stream } = await partsOf({ model });
      assert.equal(await stream.finishReason, finish);
    }
  });
}

await check("what the model thought is given, at once and in a stream", async () => {
  await tell({ thought: "I greet.", text: "Hello.", times: 0 });
  const model = models["openai-compatible"];
  assert.equal((await ai.generateText({ model, messages: hello })).reasoningText, "I greet.");
  assert.equal(await (await partsOf({ model })).stream.reasoningText, "I greet.");
});

await check("texts are embedded", async () => {
  const model = (compatible.embeddingModel ?? compatible.textEmbeddingModel)("builtin");
  const { embeddings } = await ai.embedMany({ model, values: ["a cat", "a dog"] });
  assert.deepEqual(embeddings.map((each) => each.length), [512, 512]);
});

await check("a wrong token is an APICallError with 401", async () => {
  const model = createOpenAICompatible({ ...given, apiKey: "org_wrong" })("m");
  assert.equal((await raised(ai.generateText({ model, messages: hello }))).statusCode, 401);
});

await check("the chat transport reads an agent's stream as a UI message, with its tool", async () => {
  const sum = { name: "calculator", arguments: { expression: "6*7" }, id: "call_sum" };
  await tell({ text: "I calculate.", calls: [sum] }, { text: "It is 42." });
  const transport = new ai.DefaultChatTransport({
    api: `${url}/agents/clerk/invoke`,
    headers: { Authorization: `Bearer ${token}`, "X-AG-Messages-Format": "vercel" },
  });
  const messages = [{ id: "1", role: "user", parts: [{ type: "text", text: "What is 6*7?" }] }];
  const stream = await transport.sendMessages({ chatId: "1", messages, trigger: "submit-message" });
  let whole;
  for await (const message of ai.readUIMessageStream({ stream, terminateOnError: true })) whole = message;
  const tool = whole.parts.find((part) => part.toolCallId);
  assert.equal(tool?.state, "output-available", JSON.stringify(tool));
  assert.match(tool.output, /"42"/);
  const texts = whole.parts.filter((part) => part.type === "text").map((part) => part.text);
  assert.deepEqual(texts, ["I calculate.", "It is 42."]);
});
