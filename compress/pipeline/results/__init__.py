"""What a run made -> what its result says."""
