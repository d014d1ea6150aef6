"""From paths to a report: which files, which rules, the engine that runs them, baselines and changes."""
