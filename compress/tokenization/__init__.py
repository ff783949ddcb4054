"""What tokenizers have in common: their special tokens, how they mark words, and the contents of tokenizer.json."""
