"""perfetto_reader.py - a decoder of Perfetto's traces of the tests' own, by the numbers of its published schema."""
from harness import equal, need
from pprof_reader import fields


class Perfetto:
    """What the published schema says of a file, by its numbers; nothing of ours."""

    def __init__(self, raw):
        self.packets, self.names, self.frames, self.stacks, self.rows = [], {}, {}, {}, {}
        for number, packet in fields(raw):
            equal(number, 1, "a Trace has nothing but packets")
            self.add(self.all(packet))

    @staticmethod
    def all(message):
        found = {}
        for number, value in fields(message):
            found.setdefault(number, []).append(value)
        return found

    def add(self, packet):
        self.packets.append(packet)
        equal(packet[10], [1], "one sequence")
        for interned in map(self.all, packet.get(12, [])):
            for entry in map(dict, map(fields, interned.get(5, []))):
                self.names[entry[1]] = entry[2].decode()
            for entry in map(dict, map(fields, interned.get(6, []))):
                self.frames[entry[1]] = self.names[entry[2]]
            for entry in map(self.all, interned.get(7, [])):
                self.stacks[entry[1][0]] = [self.frames[f] for f in entry[2]]
        for row in map(self.all, packet.get(60, [])):
            self.rows[row[1][0]] = row
        for event in self.events(packet):
            need(event[11][0] in self.rows, "an event's row is told first")
            need(not event.get(56) or event[56][0] in self.stacks, "and so is its stack")

    def events(self, packet):
        return [self.all(e) for e in packet.get(11, [])]

    def names_of_rows(self):
        """Of threads, and of what else has a row."""
        return {name.decode() for row in self.rows.values() for name in row.get(2, []) + [n for t in row.get(4, []) for n in self.all(t).get(5, [])]}

    def switches(self):
        """(cpu, time, from, state, to), in the order of time."""
        found = []
        for packet in self.packets:
            for bundle in map(self.all, packet.get(1, [])):
                for event in map(self.all, bundle[2]):
                    for s in map(dict, map(fields, event.get(4, []))):
                        found.append((bundle[1][0], event[1][0], s[2], s[4], s[6]))
        return sorted(found, key=lambda s: s[1])
