"""Prints the tables of README.md from results/*.json: python -m benchmarks.report"""

import json

from benchmarks import timing

HEAD = "| | | ms | of medians | by rounds (quartiles) | MB |\n|---|---|---|---|---|---|"


def environment(e: dict) -> str:
    versions = ", ".join(f"{p} {e[p]}" for p in ("torch", *timing.PEERS) if e.get(p))
    return (
        f"{e['processor']}, {e['threads']} thread{'s' * (e['threads'] > 1)}, {versions}, "
        f"{e['date']}, commit {e['commit']}"
    )


def row(setting: str, name: str, result: dict) -> str:
    case = result["cases"][name]
    low, middle, high = case["ratio"]
    n_bytes = result.get("saved_bytes", result.get("peak_bytes", {})).get(name)
    cells = [
        setting,
        name,
        f"{case['seconds'][1] * 1e3:.1f}",
        f"{case['ratio_of_medians']:.2f}",
        f"{middle:.2f} ({low:.2f} to {high:.2f})",
        "" if n_bytes is None else f"{n_bytes / 1e6:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    for path in sorted(timing.RESULTS.glob("*.json")):
        results = json.loads(path.read_text())
        settings: dict[str, list[str]] = {}
        for setting, result in results.items():
            settings.setdefault(environment(result["environment"]), []).append(setting)
        print(f"### {path.stem}\n")
        for measured, names in settings.items():
            print(f"{', '.join(names)}: {measured}\n" if len(settings) > 1 else f"{measured}\n")
        print(HEAD)
        for setting, result in results.items():
            print(*(row(setting, name, result) for name in result["cases"]), sep="\n")
        print()


if __name__ == "__main__":
    main()
