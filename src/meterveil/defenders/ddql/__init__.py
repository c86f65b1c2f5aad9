"""Two published defences that learn battery powers by double Q-learning, for comparison."""
