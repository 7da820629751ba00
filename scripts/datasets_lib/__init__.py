"""The parts of fetch_datasets.py: where data come from, how they are cleaned, how they are checked."""
