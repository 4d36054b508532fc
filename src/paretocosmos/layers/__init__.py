"""What networks are made of beside torch's own layers."""
