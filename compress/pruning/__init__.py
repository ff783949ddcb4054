"""Structured pruning of a trained model without training: choose heads and feed-forward neurons to remove, and repair the
rest.

`scores`: how much the loss depends on each. `obs`: the error of its layer without each, by second-order least squares.
`budget` and `unit_choice`: the choice under a budget. `repair`: the matrices that read what is left, refitted by least
squares. `layers`: whole layers to remove.
"""
