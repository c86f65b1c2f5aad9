"""Attackers: estimators of a home's appliances from its meter (NILM), fixed or adapted to a defence."""
