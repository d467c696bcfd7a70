"""What a source says of a case: cases that are drafted from it, and its symbols."""
