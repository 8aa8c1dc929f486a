// What a page or a program would do with the types that openapi-typescript makes, and openapi-fetch.
import createClient from "openapi-fetch";
import type { components, paths } from "./wire.js";

declare const process: { argv: string[] };
const [baseUrl, token] = process.argv.slice(2) as [string, string];
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

function holds(condition: boolean, said: unknown): asserts condition {
  if (!condition) throw new Error(JSON.stringify(said));
}

const sent = await client.POST("/api/v1/inject", { body: { to: "greeter", payload: { name: "Dan" }, wait: 10 } });
holds(sent.data !== undefined && "replies" in sent.data, sent.error);
const { thread }: components["schemas"]["InjectedAndEnded"] = sent.data;
holds(thread.status === "completed", thread);

const wrong = await client.POST("/api/v1/inject", { body: { to: "greeter", payload: { nme: "Dan" } } });
holds(wrong.error?.error.param === "/payload/nme", wrong);

const page = await client.GET("/api/v1/threads/{id}", { params: { path: { id: thread.id } } });
holds(page.data?.messages.length === 4, page);

const log = await client.GET("/api/v1/log", { params: { query: { limit: 5 } } });
holds(log.data?.events[0]?.type === "organism_started", log);

const model = await client.GET("/v1/models/{id}", { params: { path: { id: "gpt-4.1-mini" } } });
holds(model.data?.object === "model", model);

const answer = await client.POST("/v1/chat/completions", {
  body: { model: model.data.id, messages: [{ role: "user", content: "Hello!" }], store: false },
});
holds(typeof answer.data === "object" && answer.data.choices[0]?.finish_reason === "stop", answer);

const invoked = await client.POST("/invoke", {
  body: { agent: "concise-de", data: { inputs: { message: "Hallo!" } } },
});
holds(typeof invoked.data === "object" && "data" in invoked.data, invoked);

console.log(`${thread.id} has ended`);
