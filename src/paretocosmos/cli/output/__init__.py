"""What the command line shows: tables and JSON on stdout, notes and the bar on stderr."""
