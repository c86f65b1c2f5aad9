"""The report: reads result cards, puts the paper's figures beside them, and judges. It measures nothing."""
