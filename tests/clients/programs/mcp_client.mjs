// The Model Context Protocol's client for JavaScript, by streamable HTTP.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { check, token, url } from "./checks.mjs";

/** Hand a client of `/mcp` to `act`. */
async function speaking(act, key = token) {
  const client = new Client({ name: "clients", version: "1" });
  const requestInit = { headers: { Authorization: `Bearer ${key}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }));
  try {
    await act(client);
  } finally {
    await client.close();
  }
}

async function listed(client) {
  const { tools } = await client.listTools();
  return Object.fromEntries(tools.map((tool) => [tool.name, tool]));
}

await check("tools are listed and called", () =>
  speaking(async (client) => {
    assert.ok("shop" in (await listed(client)));
    const answer = await client.callTool({ name: "calculator", arguments: { expression: "6*7" } });
    assert.deepEqual(answer.structuredContent, { value: "42", exact: true, fraction: "" });
  }));

await check("a tool's own error, and a wrong argument, are results that say so", () =>
  speaking(async (client) => {
    for (const [name, given, said] of [
      ["shop", { what: "gold" }, /sold out/],
      ["calculator", { expression: "1/0" }, /zero/],
      ["calculator", { expresion: "1" }, /expresion/],
    ]) {
      const answer = await client.callTool({ name, arguments: given });
      assert.ok(answer.isError);
      assert.match(answer.content[0].text, said);
    }
  }));

await check("an error of the protocol comes as such", () =>
  speaking((client) => assert.rejects(client.request({ method: "no/such" }, { parse: (came) => came }), { code: -32601 })));

await check("a wrong token is refused with what is wrong", () =>
  assert.rejects(speaking(() => {}, "org_wrong"), /invalid_authorization/));

await check("tools carry hints of what a call does", () =>
  speaking(async (client) => {
    const tools = await listed(client);
    const { readOnlyHint, destructiveHint, idempotentHint } = tools.calculator.annotations;
    assert.deepEqual([readOnlyHint, destructiveHint, idempotentHint], [true, false, true]);
    assert.equal(tools.key_value_delete.annotations.destructiveHint, true);
  }));

await check("tools carry the schema of their answer, which holds", () =>
  speaking(async (client) => {
    const tools = await listed(client);
    assert.deepEqual(Object.keys(tools).filter((name) => !tools[name].outputSchema), []);
    const answer = await client.callTool({ name: "shop", arguments: { what: "tea" } }); // which is held to it
    assert.deepEqual(answer.structuredContent, { cents: 180, tags: ["hot"] });
  }));
