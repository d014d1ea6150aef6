"""Plugins: the hooks, the entry points, the manager that loads them, and preflight's own plugin."""
