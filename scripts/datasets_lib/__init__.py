"""The parts of fetch_datasets.py: getting, cleaning and checking data."""
