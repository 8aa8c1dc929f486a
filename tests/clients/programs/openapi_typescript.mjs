// openapi-typescript: a program with the types that it generates is type-checked, and run.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { check, tell, url } from "./checks.mjs";

const here = import.meta.dirname;

/** Run a program; it must end well. */
function run(...given) {
  const done = spawnSync(process.execPath, given, { cwd: here, encoding: "utf8" });
  assert.equal(done.status, 0, done.stdout + done.stderr);
}

await check("types are generated", () =>
  run("../node_modules/openapi-typescript/bin/cli.js", `${url}/openapi.json`, "--output", "wire.ts"));

await check("a program with them passes tsc --strict", () =>
  run(
    ...["../node_modules/typescript/bin/tsc", "--strict", "--noEmit", "--target", "esnext", "--module", "nodenext"],
    ...["--allowImportingTsExtensions", "--types", "node", "openapi_call.ts"],
  ));

await check("it lists models, asks one, and executes a tool, whose own error is a 422", async () => {
  await tell({ text: "Hello, you." });
  run("openapi_call.ts");
});
