"""preflight in an editor: a language server over the same check, fixes and memory as the command line."""
