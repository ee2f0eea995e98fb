"""What a deployment carries: a simulation by discrete events, from measured times.

    python -m benchmarks.capacity [--rates 25 50 100 200 400] [--nodes 3] [--cores 8]
        [--database-cores 8] [--replicas 1] [--writers 32] [--write-seconds 1.5]

First it repeats what `benchmarks.load` measured on one machine of two cores and prints both
side by side; the exit status is 1 where one is off by more than a quarter. Then it asks a
deployment of several web nodes, a database with replicas, and a language server, at a rate
a second, and prints latencies, how busy each part is, and which is the first above 80 %.

Assumed, not measured: a language server that writes `--writers` answers at a time, each in
`--write-seconds` (an 8B model on one GPU: about 75 tokens at 50 a second for each of 32;
measure your own); reads of the database are shared evenly by its replicas and itself; the
network takes no time.
"""

import argparse
import itertools
import random
import sys
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field

import simpy

from benchmarks.clients import quantile

_SLICE = 0.005  # seconds of a core until another thread has its turn, as Python's own
_BUSY = 0.8
_OFF = 0.25
_SECONDS = 60.0
_WARM_UP = 10.0


@dataclass(frozen=True, slots=True)
class Demand:
    """What one question takes of each part, in seconds of a core.

    Attributes:
        web: Of the web server; measured with one client (2026-11-24, `benchmarks.load`).
        locked: Share of it that only one thread of a process can do at a time.
        reads, writes: Of the database.
        client: Of the clients, where they run on the same machine.
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

# Questions a second that `benchmarks.load` measured on two cores (2026-11-24), by
# processes, kind and clients.
MEASURED: Mapping[tuple[int, str], Sequence[float]] = {
    (1, "refusals"): (37.3, 54.7, 52.7, 59.3),
    (1, "answers"): (18.7, 22.7, 22.9, 27.3),
    (2, "refusals"): (36.0, 69.7, 69.3, 71.1),
    (2, "answers"): (17.7, 32.9, 33.6, 38.4),
}
_CLIENTS = (1, 4, 16, 64)


@dataclass(slots=True)
class Part:
    """Something of which several can be used at a time, and how long it was."""

    name: str
    size: int
    resource: simpy.Resource
    used: float = 0.0

    def busy(self, seconds: float) -> float:
        return self.used / (seconds * self.size)


@dataclass(slots=True)
class World:
    """A deployment and its clock.

    Attributes:
        nodes: The cores of each web node.
        locks: For each process of a node, its interpreter's lock.
        databases: Cores of the one that is written to, then of each replica.
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
        """Take turns on `part`, each with the lock if there is one."""
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
        """Take one question through the parts, each time a little longer or shorter."""
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
    """Return the questions a second of clients that each ask one after the other."""
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
    """Return a deployment after a minute of questions that come by chance."""
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
    print("two cores, questions a second: simulated against measured")
    worst = 0.0
    for (processes, kind), rates in MEASURED.items():
        for clients, measured in zip(_CLIENTS, rates, strict=True):
            found = one_machine(processes, kind, clients)
            worst = max(worst, abs(found / measured - 1))
            print(
                f"{kind:9} {processes} processes {clients:>3} clients "
                f"{found:>6.1f} {measured:>6.1f}  {found / measured:.2f}"
            )
    print(f"the farthest is {worst:.0%} off (limit {_OFF:.0%})\n")
    return worst


def _print(rate: float, world: World) -> None:
    locks = itertools.chain.from_iterable(world.locks)
    parts = [*world.nodes, *world.databases, *locks]
    parts += [world.writers] if world.writers else []
    busiest = max(parts, key=lambda part: part.busy(_SECONDS))
    print(f"{rate:g} questions a second")
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
