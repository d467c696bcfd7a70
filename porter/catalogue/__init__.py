"""What `porter patterns` and `porter corpus` show, read without importing the DSL."""
