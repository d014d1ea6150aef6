"""A server for agents: the Model Context Protocol over the functions that the commands use."""
