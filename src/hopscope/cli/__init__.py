"""The command line. A command is: parse → call → print."""
