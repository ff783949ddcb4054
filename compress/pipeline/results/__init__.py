"""What a run made -> what its result records."""
