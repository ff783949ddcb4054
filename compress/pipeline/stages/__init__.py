"""A module for each kind of stage: what it plans, checks and runs. `registry.STAGES` lists them."""
