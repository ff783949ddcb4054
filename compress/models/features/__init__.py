"""What a model computes on texts: named features, attention, and logits of a whole split."""
