"""A module for each kind of stage, a folder for `prune`: what it plans, checks and runs. `registry.STAGES` lists them."""
