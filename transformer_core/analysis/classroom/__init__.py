"""What a class measures together, and the exact value beside it: draws, forecasts, cuts, labels, places, short runs."""
