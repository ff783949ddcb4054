"""Which heads and feed-forward neurons a trained model can best do without, and the repair of what is left. No training.

`scores`: what the loss would lose by each; `obs`: the error of its layer without each, by second-order least squares; `search`: the
choice under a budget; `repair`: the matrices behind the gaps, by least squares.
"""
