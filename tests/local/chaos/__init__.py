"""Kills and stops of real processes under load, and what must be true all the same."""
