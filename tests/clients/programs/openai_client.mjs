// OpenAI's client for JavaScript.
import assert from "node:assert/strict";
import OpenAI from "openai";
import { zodFunction, zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { asked, check, hello, order, refuse, spentToken, tell, token, url } from "./checks.mjs";

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: token, timeout: 30_000 });
const parameters = { type: "object", properties: { id: { type: "integer" } }, required: ["id"] };
const find = { type: "function", function: { name: "find", parameters } };
const tooLong = { message: "This model's maximum context length is 100000 tokens.", type: "invalid_request_error" };

const ask = (more) => client.chat.completions.create({ model: "m", messages: hello, ...more });
const result = (call) => ({ role: "tool", tool_call_id: call.id, content: "paid" });

/** The error of this kind that something ends with. */
async function raised(kind, coming) {
  const came = await coming.then(JSON.stringify, (error) => error);
  assert.ok(came instanceof kind, `no ${kind.name}, but ${came}`);
  return came;
}

async function chunksOf(more) {
  const chunks = [];
  for await (const chunk of await ask({ stream: true, ...more })) chunks.push(chunk);
  return chunks;
}

await check("an answer has text, finish and usage", async () => {
  await tell({ text: "Hello, you." });
  const answer = await ask();
  const [choice] = answer.choices;
  assert.deepEqual([choice.message.content, choice.finish_reason], ["Hello, you.", "stop"]);
  assert.equal(answer.usage.total_tokens, 10);
});

await check("a stream has the same, and nothing that is no chunk", async () => {
  await tell({ text: "Hello, you." });
  const chunks = await chunksOf({ stream_options: { include_usage: true } });
  const choices = chunks.flatMap((chunk) => chunk.choices);
  assert.equal(choices.map((choice) => choice.delta.content ?? "").join(""), "Hello, you.");
  assert.deepEqual([choices.at(-1).finish_reason, chunks.at(-1).usage.total_tokens], ["stop", 10]);
  assert.ok(chunks.every((chunk) => chunk.object === "chat.completion.chunk"));
});

await check("the streaming helper gives the whole answer", async () => {
  await tell({ text: "Hello, you." });
  const stream = client.chat.completions.stream({ model: "m", messages: hello });
  assert.equal(await stream.finalContent(), "Hello, you.");
});

await check("runTools() calls the function and gives the answer", async () => {
  await tell({ calls: [order] }, { text: "It is paid." });
  const called = [];
  const tool = { ...find, function: { ...find.function, function: (given) => called.push(given) && "paid", parse: JSON.parse } };
  const runner = client.chat.completions.runTools({ model: "m", messages: hello, tools: [tool] });
  assert.equal(await runner.finalContent(), "It is paid.");
  assert.deepEqual(called, [{ id: 7 }]);
});

await check("runTools() does so in a stream", async () => {
  await tell({ calls: [order] }, { text: "It is paid." });
  const tool = { ...find, function: { ...find.function, function: () => "paid", parse: JSON.parse } };
  const runner = client.chat.completions.runTools({ model: "m", messages: hello, tools: [tool], stream: true });
  assert.equal(await runner.finalContent(), "It is paid.");
});

await check("parse() gives an object, and its message is taken back as it is", async () => {
  await tell({ text: '{"name":"Kiel"}' }, { text: "Yes." });
  const response_format = zodResponseFormat(z.object({ name: z.string() }), "city");
  const answer = await client.chat.completions.parse({ model: "m", messages: hello, response_format });
  const { message } = answer.choices[0];
  assert.deepEqual(message.parsed, { name: "Kiel" });
  const talk = [...hello, { ...message, refusal: null, annotations: [] }, ...hello];
  assert.equal((await ask({ messages: talk })).choices[0].message.content, "Yes.");
});

await check("a strict function is handed on as such, and its parsed call is taken back", async () => {
  await tell({ calls: [order] }, { text: "It is paid." });
  const tools = [zodFunction({ name: "find", parameters: z.object({ id: z.number() }) })];
  const answer = await client.chat.completions.parse({ model: "m", messages: hello, tools });
  const { message } = answer.choices[0];
  assert.deepEqual(message.tool_calls[0].function.parsed_arguments, { id: 7 });
  assert.equal((await asked())[0].tools[0].function.strict, true);
  const talk = [...hello, message, result(message.tool_calls[0])];
  assert.equal((await ask({ messages: talk, tools })).choices[0].message.content, "It is paid.");
});

await check("models are listed and retrieved, an unknown one is a NotFoundError", async () => {
  const listed = [];
  for await (const model of client.models.list()) listed.push(model.id);
  assert.ok(listed.includes("m"));
  assert.equal((await client.models.retrieve("m")).id, "m");
  await raised(OpenAI.NotFoundError, client.models.retrieve("nobody"));
});

await check("embeddings come as numbers", async () => {
  const made = await client.embeddings.create({ model: "builtin", input: ["a cat", "a dog"] });
  assert.deepEqual(made.data.map((each) => each.embedding.length), [512, 512]);
});

await check("a wrong token is an AuthenticationError", async () => {
  await raised(OpenAI.AuthenticationError, client.withOptions({ apiKey: "org_wrong" }).models.list());
});

await check("a context that is too long is a BadRequestError with its code, and not repeated", async () => {
  await tell(refuse(400, tooLong));
  for (const stream of [false, true])
    assert.equal((await raised(OpenAI.BadRequestError, ask({ stream }))).code, "context_length_exceeded");
  assert.equal((await asked()).length, 2);
});

await check("what the provider refuses is a BadRequestError with its words, and not repeated", async () => {
  await tell(refuse(422, { message: "The penguin is not available." }));
  assert.match((await raised(OpenAI.BadRequestError, ask())).message, /penguin/);
  assert.equal((await asked()).length, 1);
});

await check("a provider's 429 is a RateLimitError with Retry-After", async () => {
  await tell(refuse(429, { message: "Slow down." }));
  const error = await raised(OpenAI.RateLimitError, client.withOptions({ maxRetries: 0 }).chat.completions.create({ model: "m", messages: hello }));
  assert.equal(error.headers.get("retry-after"), "7");
});

await check("a spent budget is a RateLimitError, and not repeated", async () => {
  let sent = 0;
  const counted = (...request) => (sent++, fetch(...request));
  const poor = client.withOptions({ apiKey: spentToken, fetch: counted });
  const error = await raised(OpenAI.RateLimitError, poor.chat.completions.create({ model: "m", messages: hello }));
  assert.deepEqual([error.code, sent], ["budget_exhausted", 1]);
});

await check("a filtered answer has its finish and the text so far, at once and in a stream", async () => {
  await tell({ text: "So far", finish: "content_filter", times: 0 });
  const [choice] = (await ask()).choices;
  assert.deepEqual([choice.message.content, choice.finish_reason], ["So far", "content_filter"]);
  const choices = (await chunksOf({})).flatMap((chunk) => chunk.choices);
  assert.equal(choices.at(-1).finish_reason, "content_filter");
});

await check("a call that max_tokens cuts is `length`", async () => {
  await tell({ calls: [{ ...order, arguments: '{"id": ' }], finish: "length" });
  assert.equal((await ask({ tools: [find], max_tokens: 5 })).choices[0].finish_reason, "length");
});
