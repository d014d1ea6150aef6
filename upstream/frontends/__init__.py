"""Tables of the programs that start Megatron internally."""
