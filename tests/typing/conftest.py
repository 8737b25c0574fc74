# Wrong on purpose, so it cannot be imported to look for doctests.
collect_ignore = ["misuse.py"]
