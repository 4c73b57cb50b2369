"""Records → OpenTelemetry. Sees records and ids, never targets."""

from agent_hooks.telemetry.spans import Tracing, console_tracing, otlp_tracing

__all__ = ["Tracing", "console_tracing", "otlp_tracing"]
