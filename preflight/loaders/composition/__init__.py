"""Configs that are put together of others, as OmegaConf and Hydra do it, over nodes: every value keeps its place."""
