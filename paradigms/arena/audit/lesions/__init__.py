"""What a subject could still do without a channel: planning by somebody who knows the protocol file by heart."""
