"""Statistics of models' scores, answers and times: intervals, significance, fidelity to another model, and goals for flips."""
