"""Write a bundle from a finished run: the graphs, the model card and the files of other tools."""
