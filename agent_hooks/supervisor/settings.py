"""The numbers of a plugin's life, each adjustable."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations are in seconds.

    Attributes:
        start_timeout: from launch until Describe has answered.
        configure_timeout: of the Configure call.
        health_interval: between checks of an idle, ready plugin.
        suspect_interval: between checks of a suspect one.
        health_timeout: of one check.
        circuit_timeouts: calls in a row that timed out until the plugin is
            started anew.
        backoff_first: before the second restart in a row; the first is at once.
        backoff_max: longest wait before a restart.
        backoff_jitter: share by which each wait varies.
        reset_after: time ready after which restarts count from zero again.
        quarantine_restarts: more restarts than this within `quarantine_window`
            quarantine the plugin.
        quarantine_window: see `quarantine_restarts`.
        concurrency: calls in flight, where Describe says nothing.
        waiting: calls that may wait for a place; one more fails at once.
        drain_timeout: for what a replaced plugin has in flight.
        shutdown_grace: after the Shutdown call, until SIGTERM.
        term_grace: after SIGTERM, until SIGKILL.
        max_log_line: bytes of one log line; longer ones are cut.
        log_lines_per_second: of one plugin; those beyond are dropped and counted.
        log_lines_kept: of one plugin, for whoever asks later.
    """

    start_timeout: float = 10.0
    configure_timeout: float = 5.0
    health_interval: float = 5.0
    suspect_interval: float = 1.0
    health_timeout: float = 1.0
    circuit_timeouts: int = 5
    backoff_first: float = 0.1
    backoff_max: float = 30.0
    backoff_jitter: float = 0.2
    reset_after: float = 60.0
    quarantine_restarts: int = 5
    quarantine_window: float = 60.0
    concurrency: int = 16
    waiting: int = 64
    drain_timeout: float = 30.0
    shutdown_grace: float = 5.0
    term_grace: float = 2.0
    max_log_line: int = 8192
    log_lines_per_second: int = 1000
    log_lines_kept: int = 200

    def __post_init__(self) -> None:
        for item in fields(self):
            if not getattr(self, item.name) >= 0:
                raise ValueError(f"{item.name}: expected a number >= 0")
