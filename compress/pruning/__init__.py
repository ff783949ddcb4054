"""Which heads and feed-forward neurons a trained model can best do without, and the repair of what is left. No training.

`scores`: what the loss would lose by each; `search`: the choice under a budget; `repair`: the matrices behind the gaps, by least
squares.
"""
