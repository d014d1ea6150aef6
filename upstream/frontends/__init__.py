"""Tables of the programs that start Megatron underneath."""
