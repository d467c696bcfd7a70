"""Files of the user: written whole or not at all, and found below folders."""
