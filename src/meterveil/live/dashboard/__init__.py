"""Web page of a guard: live values, charts, pause and arm, without any request to another host."""
