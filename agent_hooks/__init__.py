"""Controls for AI agents that run outside the agent."""
