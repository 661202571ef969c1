"""The summary of all bins together: the numbers of a single run, and which bins took longest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional


@dataclass(frozen=True)
class Bin:
    """A bin: what it was planned to take, what it took, and what it did."""

    index: int
    planned: Mapping[str, Any]
    summary: Mapping[str, Any]
    seconds: float
    peak_bytes: Optional[int]
    node: str
    #: Whether an earlier call made it.
    is_resumed: bool

    def record(self) -> dict[str, Any]:
        return {
            "bin": self.index,
            "n_classes": len(self.planned["classes"]),
            "n_candidates": self.planned["n_candidates"],
            "seconds_planned": self.planned["seconds"],
            "seconds": round(self.seconds, 3),
            "memory_bytes_planned": self.planned["memory_bytes"],
            "peak_bytes": self.peak_bytes,
            "node": self.node,
            "is_resumed": self.is_resumed,
        }


def cleaned(plan: Mapping[str, Any], bins: Sequence[Bin], merged: Mapping[str, Any], n_strays: int) -> dict[str, Any]:
    """The summary of ``score_files`` for all bins, with a record of each."""
    position = {planned["name"]: place for place, planned in enumerate(plan["classes"])}
    summaries = [bin.summary for bin in bins]
    copies = [summary["copies"] for summary in summaries]
    whole: dict[str, Any] = {
        **{name: merged["relevance"][name] for name in ("n_classes", "n_candidates", "mean_relevance")},
        "copies": {name: sum(found[name] for found in copies) for name in ("by_id", "by_content")},
        "n_left_out": sum(summary["n_left_out"] for summary in summaries) + n_strays,
    }
    for name in ("without_candidates", "flat", "small_pools"):
        whole[name] = sorted((found for summary in summaries for found in summary[name]), key=position.__getitem__)
    if all("advice" in summary for summary in summaries):
        advice = (found for summary in summaries for found in summary["advice"])
        whole["advice"] = sorted(advice, key=lambda found: position[found["class"]])
    if any("choices" in summary for summary in summaries):
        whole["choices"] = _choices(summaries)
    if all("decisions" in summary for summary in summaries):
        counts = [summary["decisions"] for summary in summaries]
        whole["decisions"] = {name: sum(count[name] for count in counts) for name in counts[0]}
    if "class_texts" in summaries[0]:
        whole["class_texts"] = summaries[0]["class_texts"]  # of all classes, in every bin
    slowest = sorted(bins, key=lambda bin: -bin.seconds)
    return {**whole, "bins": [bin.record() for bin in slowest]}


def _choices(summaries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The choices of the method with their numbers of classes, the most frequent first."""
    counts: dict[str, int] = {}
    for choice in (choice for summary in summaries for choice in summary.get("choices", [])):
        counts[choice["choice"]] = counts.get(choice["choice"], 0) + choice["n_classes"]
    return [{"choice": text, "n_classes": n} for text, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def slowest_bins(records: Sequence[Mapping[str, Any]], most: int = 5) -> str:
    """A table of the bins that took longest."""
    rows = [("bin", "classes", "candidates", "planned s", "taken s", "planned MiB", "peak MiB")]
    for record in records[:most]:
        peak = "?" if record["peak_bytes"] is None else f"{record['peak_bytes'] >> 20:,}"
        rows.append((
            str(record["bin"]),
            f"{record['n_classes']:,}",
            f"{record['n_candidates']:,}",
            f"{record['seconds_planned']:.1f}",
            f"{record['seconds']:.1f}",
            f"{record['memory_bytes_planned'] >> 20:,}",
            peak,
        ))
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows)
