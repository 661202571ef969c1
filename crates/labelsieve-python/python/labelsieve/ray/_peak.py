"""The most memory that this process had at any time since the last reset."""

from __future__ import annotations

from typing import Optional


def reset_peak() -> None:
    """Forgets the peak so far, where the system allows it: a process of Ray's runs many tasks."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def peak_bytes() -> Optional[int]:
    """The peak resident size (VmHWM), where the system tells it."""
    try:
        with open("/proc/self/status") as file:
            line = next(line for line in file if line.startswith("VmHWM:"))
        return int(line.split()[1]) << 10
    except (OSError, StopIteration):
        return None
