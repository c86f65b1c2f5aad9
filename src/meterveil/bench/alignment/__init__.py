"""Condition A1 of appendix B, measured: whether the probe's policy gradient points where attackers' do."""
