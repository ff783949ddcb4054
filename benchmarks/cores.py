"""Simulate how many threads each worker of a server should have: workers x threads on more cores than this machine has.

    python benchmarks/cores.py --one 1.17 --two 0.77 --cores 2 --cores 8 --cores 32

`--one` and `--two` are measured: ms of wall-clock time of one answer with one thread, and with two threads on a core each. Amdahl's law
extrapolates: part of the work is shared among threads, the rest is not. The threads per worker divide the cores, and each thread has a
core. Requests arrive at random (Poisson) and wait in one queue; each worker answers one at a time. Contention for memory bandwidth and
caches is ignored, so results for many cores are slightly optimistic. Nothing is timed. Prints Markdown.
"""

import argparse
import heapq

import numpy as np
from records import add_json, code_line, write_json

REQUESTS = 200_000
_BEFORE = 10_000  # requests until the queue is in its steady state
LOADS = (0.1, 0.5, 0.9)  # as a share of the throughput of one single-threaded worker per core


def answer_ms(one: float, two: float, threads: int) -> float:
    """Return ms per answer by Amdahl's law, from the times with one thread and with two. Raises `ValueError` if two threads are more than
    twice as fast."""
    shared = 2 * (1 - two / one)
    if shared > 1:
        raise ValueError(f"two threads cannot be more than twice as fast as one: {one:g} and {two:g} ms")
    return one * (1 - shared + shared / threads)


def waits(workers: int, service: float, rate: float, requests: int, seed: int = 0) -> np.ndarray:
    """Return ms from each request's arrival to its answer, [request]. `rate` requests per ms arrive at random; each occupies a worker for
    `service` ms."""
    arrivals = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, requests))
    free = [0.0] * workers  # time when each worker is free
    answered = np.empty(requests)
    for number, arrival in enumerate(arrivals):
        end = max(arrival, free[0]) + service
        heapq.heapreplace(free, end)
        answered[number] = end - arrival
    return answered


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", type=float, required=True, help="ms with one thread")
    parser.add_argument("--two", type=float, required=True, help="ms with two")
    parser.add_argument("--cores", type=int, action="append", required=True)
    add_json(parser)
    arguments = parser.parse_args()
    print(f"{code_line()}\n")
    heads = [
        "cores",
        "workers x threads",
        "ms an answer",
        "answers / s at most",
        *(f"{load:.0%} load: ms p50 / p99" for load in LOADS),
    ]
    print(f"| {' | '.join(heads)} |")
    print("|" + "-:|" * len(heads))
    rows = []
    for cores in arguments.cores:
        for threads in (each for each in range(1, cores + 1) if cores % each == 0):
            workers, service = cores // threads, answer_ms(arguments.one, arguments.two, threads)
            row = {"cores": cores, "threads": threads, "ms": service, "most": 1000 * workers / service, "loads": {}}
            for load in LOADS:
                rate = load * cores / arguments.one
                if rate * service < workers:
                    ms = waits(workers, service, rate, REQUESTS)[_BEFORE:]
                    row["loads"][load] = [float(np.percentile(ms, share)) for share in (50, 99)]
            rows.append(row)
            cells = [
                f"{row['loads'][load][0]:.2f} / {row['loads'][load][1]:.2f}" if load in row["loads"] else "too many"
                for load in LOADS
            ]
            print(
                f"| {cores} | {workers} x {threads} | {service:.2f} | {row['most']:,.0f} | {' | '.join(cells)} |",
                flush=True,
            )
    write_json(arguments.json, rows)


if __name__ == "__main__":
    main()
