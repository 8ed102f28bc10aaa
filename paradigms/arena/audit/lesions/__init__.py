"""What a subject could still do without a channel of information: planning with full knowledge of the protocol file."""
