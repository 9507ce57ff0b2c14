"""Prints the table of README.md from results/*.json. Run: python -m benchmarks.report"""

import json

from benchmarks import measure


def environment(e: dict) -> str:
    versions = ", ".join(f"{p} {e[p]}" for p in ("torch", *measure.PEERS) if e.get(p))
    return (
        f"{e['processor']}, {e['threads']} thread{'s' * (e['threads'] > 1)}, {versions}, "
        f"{e['date']}, commit {e['commit']}"
    )


def rows(setting: str, result: dict) -> list[str]:
    lines = []
    for name, case in result["cases"].items():
        low, middle, high = case["ratio"]
        cells = [
            setting,
            name,
            f"{case['seconds'][1] * 1e3:.1f}",
            f"{case['ratio_of_medians']:.2f}",
        ]
        cells.append(f"{middle:.2f} ({low:.2f} to {high:.2f})")
        size = result.get("saved_bytes", {}).get(name, result.get("peak_bytes", {}).get(name))
        cells.append("" if size is None else f"{size / 1e6:.1f}")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def gpu_rows(setting: str, cases: dict) -> list[str]:
    lines = []
    for name, case in cases.items():
        share = f"{case['utilisation']:.1%}" if case["utilisation"] else ""
        lines.append(f"| {setting} | {name} | {case['tokens_per_second']:,.0f} | {share} |")
    return lines


def main() -> None:
    for path in sorted(measure.RESULTS.glob("*.json")):
        results = json.loads(path.read_text())
        print(f"### {path.stem}\n")
        for setting, result in results.items():
            print(f"{setting}: {environment(result.pop('environment'))}\n")
        if path.stem.startswith("gpu"):
            print("| | | tokens/s | share of peak |\n|---|---|---|---|")
        else:
            print("| | | ms | of medians | by rounds (quartiles) | MB |\n|---|---|---|---|---|---|")
        for setting, result in results.items():
            of_one = rows(setting, result) if "cases" in result else gpu_rows(setting, result)
            print(*of_one, sep="\n")
        print()


if __name__ == "__main__":
    main()
