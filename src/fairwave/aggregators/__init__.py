"""Ways to make one step of many updates, some of which may come from attackers."""
