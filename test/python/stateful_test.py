"""Promise: whatever is done to a filter, in whatever order, it behaves like the set of what was done: no key that was
inserted answers no, copies are independent, bytes and pickles bring everything back, nothing crashes. Would notice: a
key lost by a merge, a copy, a reload or an erase; a filter that changes with its copy; an exception of another kind.

stateful_test.py [STEPS]      hypothesis, against a set
"""
import pickle
import sys
import unittest

from hypothesis import HealthCheck, settings, strategies
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import perhaps

STEPS = int(sys.argv.pop(1)) if len(sys.argv) > 1 else 1000
EXAMPLE = 50  # steps of one example at most; 24 on average
FAMILIES = ["line", "block", "classic", "scalable", "counting", "cuckoo", "quotient"]
ERASES = ["counting", "cuckoo", "quotient"]

texts = strategies.text(strategies.characters(blacklist_categories=["Cs"]), max_size=12)
keys = strategies.one_of(texts, strategies.binary(max_size=12), strategies.integers(-(2**63), 2**64 - 1))


def same(key):
    """Keys that are one key: text is its UTF-8 bytes, and a number its 64 bits."""
    return key.encode() if isinstance(key, str) else key % 2**64 if isinstance(key, int) else key


class Filters(RuleBasedStateMachine):
    pairs = Bundle("pairs")
    steps = 0  # of all examples

    @initialize()
    def start(self):
        self.all = []

    def keep(self, filter, truth, family):
        pair = (filter, truth, family)
        self.all.append(pair)
        return pair

    @rule(target=pairs, family=strategies.sampled_from(FAMILIES), keys=strategies.sampled_from([1, 50, 2000]),
          fpr=strategies.sampled_from([0.5, 0.01, 1e-9]))
    def new(self, family, keys, fpr):
        return self.keep(perhaps.Filter(keys=keys, fpr=fpr, family=family), set(), family)

    @rule(target=pairs, family=strategies.sampled_from(FAMILIES + ["ribbon", "fuse"]),
          column=strategies.one_of(strategies.lists(texts), strategies.lists(strategies.integers(0, 2**64 - 1))))
    def build(self, family, column):
        return self.keep(perhaps.build(column, family=family), {same(key) for key in column}, family)

    @rule(pair=pairs, key=keys)
    def add(self, pair, key):
        filter, truth, family = pair
        try:
            # Copies of a key would have to be counted to know what an erase leaves.
            if family in ERASES and same(key) in truth:
                return
            filter.add(key)
            truth.add(same(key))
        except perhaps.Full:
            assert family == "cuckoo" or family == "quotient"
        except perhaps.Unsupported:
            assert filter.read_only

    @rule(pair=pairs, column=strategies.lists(keys, max_size=30))
    def update(self, pair, column):
        filter, truth, family = pair
        column = list({same(key): key for key in column if family not in ERASES or same(key) not in truth}.values())
        try:
            filter.update(column)
            truth.update(map(same, column))
        except perhaps.Full:  # some of them are in
            self.all = [other for other in self.all if other is not pair]
        except perhaps.Unsupported:
            assert filter.read_only or not column

    @rule(pair=pairs, data=strategies.data())
    def discard(self, pair, data):
        filter, truth, family = pair
        if not truth or pair not in self.all:
            return
        key = data.draw(strategies.sampled_from(sorted(truth, key=repr)))
        try:
            assert filter.discard(key) in ("removed", "kept")
            truth.remove(key)
        except perhaps.Unsupported:
            assert family not in ERASES or filter.read_only

    @rule(a=pairs, b=pairs)
    def merge(self, a, b):
        before = bytes(a[0])
        try:
            a[0].__ior__(b[0])
            if a[2] in ERASES:  # keys of both are in twice
                self.all = [other for other in self.all if other is not a]
            a[1].update(b[1])
        except (perhaps.Mismatch, perhaps.Unsupported, perhaps.Full):
            assert bytes(a[0]) == before

    @rule(a=pairs, b=pairs)
    def intersect(self, a, b):
        try:
            a[0].__iand__(b[0])
            a[1].intersection_update(b[1])
        except (perhaps.Mismatch, perhaps.Unsupported):
            pass

    @rule(target=pairs, pair=pairs, way=strategies.sampled_from(["copy", "bytes", "pickle"]))
    def copied(self, pair, way):
        filter, truth, family = pair
        if way == "copy":
            other = filter.copy()
        elif way == "bytes":
            other = perhaps.Filter.from_bytes(bytes(filter))
        else:
            other = pickle.loads(pickle.dumps(filter))
        assert bytes(other) == bytes(filter)
        result = (other, set(truth), family)
        if any(pair is known for known in self.all):
            self.all.append(result)
        return result

    @rule(pair=pairs, data=strategies.binary(max_size=8), at=strategies.integers(0, 10**6))
    def damaged(self, pair, data, at):
        whole = bytearray(bytes(pair[0]))
        at %= len(whole)
        whole[at:at + len(data)] = data
        try:
            perhaps.Filter.from_bytes(whole)
        except perhaps.Error:
            pass

    @invariant()
    def no_key_is_lost(self):
        Filters.steps += 1
        for filter, truth, _ in getattr(self, "all", []):
            column = list(truth)
            assert filter.contains(column).all()
            if column:
                assert column[0] in filter


class Stateful(unittest.TestCase):
    def test_like_a_set(self):
        run_state_machine_as_test(Filters, settings=settings(
            max_examples=max(1, STEPS // 20), stateful_step_count=EXAMPLE, deadline=None, derandomize=True,
            database=None, suppress_health_check=list(HealthCheck)))
        self.assertGreater(Filters.steps, STEPS // 2)
        print(f"{Filters.steps} steps")


if __name__ == "__main__":
    unittest.main()
