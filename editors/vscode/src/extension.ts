// A thin client: starts `preflight lsp` and hands it YAML files and shell scripts.

import * as vscode from "vscode";
import { LanguageClient, LanguageClientOptions, Middleware, ServerOptions } from "vscode-languageclient/node";
import { Command, findCommand } from "./server";

const MISSING = "preflight is not found. Install it in the selected Python environment: pip install '.[lsp]' in its checkout";
const SELECTOR = [
  { scheme: "file", language: "yaml" },
  { scheme: "file", language: "shellscript" },
  { scheme: "untitled", language: "yaml" },
  { scheme: "untitled", language: "shellscript" },
];

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
    vscode.commands.registerCommand("preflight.restart", start),
    vscode.workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration("preflight.command")) {
        await start();
      }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(start),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await client?.stop();
}

async function start(): Promise<void> {
  await client?.stop();
  client = undefined;
  const command = await served();
  if (command === undefined) {
    void vscode.window.showWarningMessage(MISSING);
    return;
  }
  const server: ServerOptions = { run: command, debug: command };
  const options: LanguageClientOptions = { documentSelector: SELECTOR, middleware: { provideDiagnostics } };
  client = new LanguageClient("preflight", "preflight", server, options);
  await client.start();
}

/**
 * Diagnostics of a document. vscode-languageclient 9.0.1 turns a request that is cancelled by further typing into an
 * empty report, which would clear the findings until the next answer; an error keeps them.
 */
const provideDiagnostics: Required<Middleware>["provideDiagnostics"] = async (document, previous, token, next) => {
  const report = await next(document, previous, token);
  if (token.isCancellationRequested) {
    throw new vscode.CancellationError();
  }
  return report;
};

async function served(): Promise<Command | undefined> {
  return findCommand({
    configured: vscode.workspace.getConfiguration("preflight").get<string[]>("command", []),
    python: await interpreter(),
    trusted: vscode.workspace.isTrusted,
    path: process.env["PATH"] ?? "",
    windows: process.platform === "win32",
  });
}

/** The interpreter that the Python extension has selected, where that extension is there. */
async function interpreter(): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension("ms-python.python");
  if (extension === undefined) {
    return undefined;
  }
  const api = await extension.activate();
  const environments = api?.environments;
  const active = environments?.getActiveEnvironmentPath?.();
  const resolved = active === undefined ? undefined : await environments.resolveEnvironment(active);
  return resolved?.executable?.uri?.fsPath;
}
