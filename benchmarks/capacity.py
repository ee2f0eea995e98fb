"""Estimate the capacity of a deployment by discrete-event simulation.

    python -m benchmarks.capacity [--rates 25 50 100 200 400] [--nodes 3] [--cores 8]
        [--database-cores 8] [--replicas 1] [--writers 32] [--write-seconds 1.5]

The service times are measured ones. It first simulates what `benchmarks.load` measured
on one machine with two cores and prints both side by side; the exit status is 1 if one
deviates by more than a quarter. Then it simulates a deployment of several web nodes, a
database with replicas and a language server at each rate of questions per second, and
prints latencies, the utilization of each part, and the busiest part if it is above 80
%.

Assumed, not measured: the language server writes `--writers` answers at a time, each in
`--write-seconds` (an 8B model on one GPU: about 75 tokens at 50 per second for each of
32; measure your own); database reads are spread evenly over the primary and its
replicas; the network takes no time.
"""

import argparse
import itertools
import random
import sys
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field

import simpy

from benchmarks.clients import quantile

_SLICE = 0.005  # seconds until another thread runs: Python's default switch interval
_BUSY = 0.8
_OFF = 0.25
_SECONDS = 60.0
_WARM_UP = 10.0


@dataclass(frozen=True, slots=True)
class Demand:
    """The core seconds that one question takes from each part.

    Attributes:
        web: Web server; measured with one client (2026-11-24, `benchmarks.load`).
        locked: Share of `web` that only one thread of a process can run at a time.
        reads, writes: Database.
        client: The client, if it runs on the same machine.
        written: Whether a language model writes the answer.
    """

    web: float
    reads: float
    writes: float
    locked: float = 1.0
    client: float = 0.0
    written: bool = False


DEMANDS: Mapping[str, Demand] = {
    "refusals": Demand(web=0.0156, reads=0.0055, writes=0.002, client=0.0011),
    "answers": Demand(
        web=0.0438, reads=0.0047, writes=0.002, client=0.0015, locked=0.8
    ),
    "written": Demand(web=0.0438, reads=0.006, writes=0.002, locked=0.8, written=True),
}
MIX: Mapping[str, float] = {"refusals": 0.6, "answers": 0.2, "written": 0.2}

# Questions per second that `benchmarks.load` measured on two cores (2026-11-24), by
# processes and kind, for each number of `_CLIENTS`.
MEASURED: Mapping[tuple[int, str], Sequence[float]] = {
    (1, "refusals"): (37.3, 54.7, 52.7, 59.3),
    (1, "answers"): (18.7, 22.7, 22.9, 27.3),
    (2, "refusals"): (36.0, 69.7, 69.3, 71.1),
    (2, "answers"): (17.7, 32.9, 33.6, 38.4),
}
_CLIENTS = (1, 4, 16, 64)


@dataclass(slots=True)
class Part:
    """A resource with `size` units, and the seconds that they have been in use."""

    name: str
    size: int
    resource: simpy.Resource
    used: float = 0.0

    def busy(self, seconds: float) -> float:
        return self.used / (seconds * self.size)


@dataclass(slots=True)
class World:
    """A simulated deployment and its clock.

    Attributes:
        nodes: The cores of each web node.
        locks: For each node, the interpreter lock of each of its processes.
        databases: The cores of the primary, then of each replica.
    """

    chance: random.Random
    env: simpy.Environment = field(default_factory=simpy.Environment)
    nodes: list[Part] = field(default_factory=list)
    locks: list[list[Part]] = field(default_factory=list)
    databases: list[Part] = field(default_factory=list)
    writers: Part | None = None
    write_seconds: float = 1.5
    times: dict[str, list[float]] = field(default_factory=dict)

    def part(self, name: str, size: int) -> Part:
        return Part(name, size, simpy.Resource(self.env, size))

    def work(
        self, part: Part, seconds: float, lock: Part | None = None
    ) -> Generator[simpy.Event, None, None]:
        """Use `part` for `seconds` in time slices, each holding the lock if given."""
        left = seconds
        while left > 0:
            turn = min(left, _SLICE)
            left -= turn
            if lock:
                with lock.resource.request() as locked:
                    yield locked
                    yield from self._hold(part, turn)
                    lock.used += turn if self.env.now > _WARM_UP else 0
            else:
                yield from self._hold(part, turn)

    def _hold(self, part: Part, seconds: float) -> Generator[simpy.Event, None, None]:
        with part.resource.request() as free:
            yield free
            yield self.env.timeout(seconds)
            part.used += seconds if self.env.now > _WARM_UP else 0

    def ask(self, kind: str) -> Generator[simpy.Event, None, None]:
        """Simulate one question, whose service times vary log-normally."""
        demand, began = DEMANDS[kind], self.env.now
        more = self.chance.lognormvariate(0, 0.2)
        at = self.chance.randrange(len(self.nodes))
        node, lock = self.nodes[at], self.chance.choice(self.locks[at])
        yield from self.work(node, demand.client)
        yield from self.work(node, more * demand.web * demand.locked / 2, lock)
        yield from self.work(node, more * demand.web * (1 - demand.locked))
        yield from self.work(self.chance.choice(self.databases), more * demand.reads)
        if demand.written and self.writers:
            yield from self._hold(self.writers, more * self.write_seconds)
        yield from self.work(node, more * demand.web * demand.locked / 2, lock)
        yield from self.work(self.databases[0], more * demand.writes)
        if began > _WARM_UP:
            self.times.setdefault(kind, []).append(self.env.now - began)


def one_machine(processes: int, kind: str, clients: int, cores: int = 2) -> float:
    """Return the simulated questions per second of clients that never pause."""
    world = World(random.Random(1))
    host = world.part("cores", cores)
    world.nodes, world.databases = [host], [host]
    world.locks = [[world.part("lock", 1) for _ in range(processes)]]

    def client() -> Generator[simpy.Event, None, None]:
        while True:
            yield from world.ask(kind)

    for _ in range(clients):
        world.env.process(client())
    world.env.run(until=_WARM_UP + _SECONDS)
    return len(world.times[kind]) / _SECONDS


def deployment(options: argparse.Namespace, rate: float) -> World:
    """Simulate a deployment for a minute of Poisson arrivals at `rate` per second."""
    world = World(random.Random(1), write_seconds=options.write_seconds)
    for number in range(options.nodes):
        world.nodes.append(world.part(f"web node {number + 1}", options.cores))
        processes = min(4, options.cores)
        world.locks.append([world.part("lock", 1) for _ in range(processes)])
    for number in range(1 + options.replicas):
        name = f"replica {number}" if number else "database"
        world.databases.append(world.part(name, options.database_cores))
    world.writers = world.part("language server", options.writers)

    def arrivals() -> Generator[simpy.Event, None, None]:
        while True:
            yield world.env.timeout(world.chance.expovariate(rate))
            (kind,) = world.chance.choices([*MIX], [*MIX.values()])
            world.env.process(world.ask(kind))

    world.env.process(arrivals())
    world.env.run(until=_WARM_UP + _SECONDS)
    return world


def main() -> int:
    """Simulate and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--rates", type=float, nargs="+", default=[25, 50, 100, 200, 400]
    )
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--cores", type=int, default=8)
    parser.add_argument("--database-cores", type=int, default=8)
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--writers", type=int, default=32)
    parser.add_argument("--write-seconds", type=float, default=1.5)
    options = parser.parse_args()
    worst = _compare()
    for rate in options.rates:
        _print(rate, deployment(options, rate))
    return 0 if worst <= _OFF else 1


def _compare() -> float:
    print("two cores, questions per second: simulated against measured")
    worst = 0.0
    for (processes, kind), rates in MEASURED.items():
        for clients, measured in zip(_CLIENTS, rates, strict=True):
            found = one_machine(processes, kind, clients)
            worst = max(worst, abs(found / measured - 1))
            print(
                f"{kind:9} {processes} processes {clients:>3} clients "
                f"{found:>6.1f} {measured:>6.1f}  {found / measured:.2f}"
            )
    print(f"largest deviation: {worst:.0%} (limit {_OFF:.0%})\n")
    return worst


def _print(rate: float, world: World) -> None:
    locks = itertools.chain.from_iterable(world.locks)
    parts = [*world.nodes, *world.databases, *locks]
    parts += [world.writers] if world.writers else []
    busiest = max(parts, key=lambda part: part.busy(_SECONDS))
    print(f"{rate:g} questions per second")
    for kind, times in sorted(world.times.items()):
        p50, p95, p99 = (1000 * quantile(times, share) for share in (0.5, 0.95, 0.99))
        print(f"  {kind:9} p50 {p50:>7.0f}  p95 {p95:>7.0f}  p99 {p99:>7.0f} ms")
    shares = ", ".join(f"{part.name} {part.busy(_SECONDS):.0%}" for part in (
        world.nodes[0], *world.databases, *([world.writers] if world.writers else [])
    ))  # fmt: skip
    over = busiest.busy(_SECONDS) > _BUSY
    print(f"  {shares}" + (f"; too busy: {busiest.name}" if over else ""))


if __name__ == "__main__":
    sys.exit(main())
