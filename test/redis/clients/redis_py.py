"""redis-py: r.bf(), r.cf() as documented.  redis_py.py PORT"""
import sys

import redis

r = redis.Redis(port=int(sys.argv[1]), decode_responses=True)
r.flushall()
bf, cf = r.bf(), r.cf()
assert bf.create("bf", 0.01, 1000, expansion=4)
assert bf.add("bf", "a") == 1 and bf.add("bf", "a") == 0
assert bf.madd("bf", "a", "b") == [0, 1]
assert bf.insert("new", ["x", "y"], capacity=50, error=0.001, expansion=2) == [1, 1]
assert bf.insert("fixed", ["x"], noScale=True) == [1]
assert bf.exists("bf", "a") == 1 and bf.mexists("bf", "a", "none") == [1, 0]
info = bf.info("bf")
assert (info.capacity, info.filterNum, info.insertedNum, info.expansionRate) == (1000, 1, 2, 4), vars(info)
try:
    bf.create("bf", 0.01, 1000)
    raise AssertionError("created twice")
except redis.ResponseError as why:
    assert str(why) == "item exists", why

raw = redis.Redis(port=int(sys.argv[1]))
for family, key, commands in (("BF", "bf", raw.bf()), ("CF", "cf", raw.cf())):
    if family == "CF":
        assert cf.create("cf", 1000, bucket_size=4, max_iterations=10, expansion=2)
        assert cf.add("cf", "a") == 1 and cf.addnx("cf", "a") == 0 and cf.count("cf", "a") == 1
        assert cf.insert("cf", ["b", "c"]) == [1, 1] and cf.insertnx("cf", ["b", "d"]) == [0, 1]
        assert cf.exists("cf", "b") == 1 and cf.delete("cf", "b") == 1
        about = cf.info("cf")
        assert (about.bucketSize, about.insertedNum, about.deletedNum) == (4, 3, 1), vars(about)
    iterator = 0
    while True:
        iterator, data = commands.scandump(key, iterator)
        if iterator == 0:
            break
        commands.loadchunk(key + ":copy", iterator, data)
assert bf.exists("bf:copy", "a") == 1 and cf.exists("cf:copy", "c") == 1
with r.pipeline() as pipe:
    pipe.bf().add("bf", "p")
    pipe.execute()
print("redis-py: ok")
