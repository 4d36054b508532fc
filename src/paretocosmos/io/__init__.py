"""Files: written whole or not at all, locked, validated, trusted."""
