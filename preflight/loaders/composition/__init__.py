"""Composed configs, as in OmegaConf and Hydra, over nodes: every value keeps its place."""
