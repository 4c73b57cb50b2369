"""The contract: agent-hooks 0.1 §3 to §12, without any I/O."""
