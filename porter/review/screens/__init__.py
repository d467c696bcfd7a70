"""The screens of `porter review`. Textual is imported here and in app.py only."""
