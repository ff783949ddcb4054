"""From cards to models: locate and load a teacher, build a student from it, name its features.

Import the submodules: those that need no torch (`dimensions`, `layer_maps`, `checkpoints`) stay importable without it.
"""
