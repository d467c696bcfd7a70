"""What the text of the source says beside the IR: names of parameters in expressions, calls."""
