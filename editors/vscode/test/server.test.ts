import assert from "node:assert/strict";
import { test } from "node:test";
import { findCommand, Surroundings } from "../src/server";

const around = (more: Partial<Surroundings>): Surroundings => ({
  configured: [],
  trusted: true,
  path: "/usr/local/bin:/usr/bin",
  windows: false,
  exists: (file) => ["/usr/bin/preflight", "/venv/bin/preflight"].includes(file),
  ...more,
});

test("the setting comes first, with its words", () => {
  const found = findCommand(around({ configured: ["uvx", "preflight", "lsp"], python: "/venv/bin/python" }));
  assert.deepEqual(found, { command: "uvx", args: ["preflight", "lsp"] });
});

test("then the selected environment", () => {
  const found = findCommand(around({ python: "/venv/bin/python" }));
  assert.deepEqual(found, { command: "/venv/bin/preflight", args: ["lsp"] });
});

test("an environment of a workspace that is not trusted is not run", () => {
  const found = findCommand(around({ python: "/venv/bin/python", trusted: false }));
  assert.deepEqual(found, { command: "/usr/bin/preflight", args: ["lsp"] });
});

test("then the path", () => {
  assert.deepEqual(findCommand(around({})), { command: "/usr/bin/preflight", args: ["lsp"] });
});

test("what is not there is not found", () => {
  assert.equal(findCommand(around({ exists: () => false })), undefined);
});
