// ioredis: modules by call(), pipelines, and the dump commands with binary data.  ioredis.mjs PORT
import assert from 'node:assert/strict';
import { Redis } from 'ioredis';

const client = new Redis(Number(process.argv[2]), '127.0.0.1');
await client.flushall();
assert.equal(await client.call('BF.RESERVE', 'bf', '0.01', '1000'), 'OK');
assert.deepEqual(await client.call('BF.MADD', 'bf', 'a', 'b', 'a'), [1, 1, 0]);
const answers = await client.pipeline()
  .call('BF.EXISTS', 'bf', 'a').call('BF.EXISTS', 'bf', 'none').call('CF.ADD', 'cf', 'x').exec();
assert.deepEqual(answers, [[null, 1], [null, 0], [null, 1]]);
for (const [family, key] of [['BF', 'bf'], ['CF', 'cf']]) {
  for (let iterator = 0; ;) {
    const [next, data] = await client.callBuffer(`${family}.SCANDUMP`, key, iterator);
    iterator = Number(next);
    if (iterator === 0) break;
    assert.equal(await client.call(`${family}.LOADCHUNK`, key + ':copy', iterator, data), 'OK');
  }
}
assert.deepEqual(await client.call('BF.MEXISTS', 'bf:copy', 'a', 'b', 'none'), [1, 1, 0]);
assert.equal(await client.call('CF.EXISTS', 'cf:copy', 'x'), 1);
await assert.rejects(client.call('BF.RESERVE', 'bf', '2', '1'), /error rate must be in the range/);
client.disconnect();
console.log('ioredis: ok');
