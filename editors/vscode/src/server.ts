// Which command serves the editor. Nothing here needs VS Code, so that it can be tested without one.

import { existsSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

export interface Command {
  command: string;
  args: string[];
}

export interface Surroundings {
  /** The setting preflight.command; empty where nobody set it. */
  configured: readonly string[];
  /** The interpreter of the selected Python environment, where one is known. */
  python?: string;
  /** Whether the workspace is trusted: else nothing that it brings is run. */
  trusted: boolean;
  path: string;
  windows: boolean;
  exists?: (file: string) => boolean;
}

const SERVE = ["lsp"];

/** The command that serves the editor; undefined where preflight is not found. */
export function findCommand(around: Surroundings): Command | undefined {
  const [command, ...args] = around.configured;
  if (command !== undefined) {
    return { command, args };
  }
  const folders = around.path.split(delimiter).filter((folder) => folder !== "");
  if (around.python !== undefined && around.trusted) {
    folders.unshift(dirname(around.python));
  }
  const exists = around.exists ?? existsSync;
  const name = around.windows ? "preflight.exe" : "preflight";
  const found = folders.map((folder) => join(folder, name)).find((file) => exists(file));
  return found === undefined ? undefined : { command: found, args: SERVE };
}
