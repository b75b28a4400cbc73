// node-redis: client.bf.*, client.cf.* as documented, in RESP2 and RESP3.  node_redis.mjs PORT
import assert from 'node:assert/strict';
import { createClient } from 'redis';

for (const RESP of [2, 3]) {
  const client = createClient({ url: `redis://127.0.0.1:${process.argv[2]}`, RESP });
  await client.connect();
  await client.flushAll();

  assert.equal(await client.bf.reserve('bf', 0.01, 1000, { EXPANSION: 4 }), 'OK');
  assert.equal(await client.bf.add('bf', 'a'), true);
  assert.equal(await client.bf.add('bf', 'a'), false);
  assert.deepEqual(await client.bf.mAdd('bf', ['a', 'b']), [false, true]);
  assert.equal(await client.bf.exists('bf', 'a'), true);
  assert.deepEqual(await client.bf.mExists('bf', ['a', 'b', 'none']), [true, true, false]);
  assert.deepEqual(
    await client.bf.insert('bf2', ['x', 'y'], { CAPACITY: 50, ERROR: 0.001, EXPANSION: 2, NONSCALING: true }),
    [true, true]);
  assert.equal(await client.bf.card('bf'), 2);
  const info = await client.bf.info('bf');
  assert.equal(info['Capacity'], 1000);
  assert.equal(info['Number of filters'], 1);
  assert.equal(info['Number of items inserted'], 2);
  assert.equal(info['Expansion rate'], 4);
  for (let iterator = 0; ;) {
    const chunk = await client.bf.scanDump('bf', iterator);
    iterator = chunk.iterator;
    if (iterator === 0) break;
    assert.ok(chunk.chunk.length > 0);
  }

  assert.equal(await client.cf.reserve('cf', 1000, { BUCKETSIZE: 4, MAXITERATIONS: 10, EXPANSION: 2 }), 'OK');
  assert.equal(await client.cf.add('cf', 'a'), true);
  assert.equal(await client.cf.addNX('cf', 'a'), false);
  assert.equal(await client.cf.count('cf', 'a'), 1);
  assert.equal(await client.cf.exists('cf', 'a'), true);
  assert.deepEqual(await client.cf.insert('cf2', ['x', 'y'], { CAPACITY: 100 }), [true, true]);
  assert.equal((await client.cf.insertNX('cf2', ['x', 'z'])).length, 2);
  assert.equal(await client.cf.del('cf', 'a'), true);
  assert.equal(await client.cf.exists('cf', 'a'), false);
  const cuckoo = await client.cf.info('cf');
  assert.equal(cuckoo['Bucket size'], 4);
  assert.equal(cuckoo['Max iterations'], 10);
  await assert.rejects(client.bf.reserve('bf', 0.01, 1000), /item exists/);

  const both = await client.multi().bf.add('bf', 'm').bf.exists('bf', 'm').exec();
  assert.deepEqual(both, [true, true]);
  client.destroy();
}
console.log('node-redis: ok');
