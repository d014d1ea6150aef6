"""One module per output format. A reporter takes a Report and gives the text to write."""
