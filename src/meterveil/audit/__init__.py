"""What a stranger reads out of a meter: the uses of appliances, sleep and absence, and how sure that is."""
