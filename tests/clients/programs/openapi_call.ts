// A program with the types that openapi-typescript generates; `wire.ts` is made by openapi_typescript.mjs.
import createClient from "openapi-fetch";
import type { paths } from "./wire.ts";

const headers = { Authorization: `Bearer ${process.env.ORGANISM_TOKEN}` };
const client = createClient<paths>({ baseUrl: process.env.ORGANISM_URL, headers });

function equal(came: unknown, expected: unknown): void {
  if (came !== expected) throw new Error(`expected ${expected}, came ${came}`);
}

const models = await client.GET("/v1/models");
equal(models.data?.data[0].id, "m");

const answer = await client.POST("/v1/chat/completions", {
  body: { model: "m", messages: [{ role: "user", content: "Hello!" }] },
});
equal(typeof answer.data === "object" ? answer.data.choices[0].message.content : undefined, "Hello, you.");

const executed = await client.POST("/v1/tools/execute", {
  body: { name: "shop", arguments: { what: "gold" } },
});
equal(executed.response.status, 422);
equal(executed.error?.error.code, "tool_error");
