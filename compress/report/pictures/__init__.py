"""Pictures: drawn from Vega-Lite documents, and the plot of all models."""
