"""Code for separate processes that execute a framework: real parsers and validators, with stand-ins for packages."""
