"""One function per figure: plain data in, a matplotlib Figure out. The data is saved beside the figure."""
