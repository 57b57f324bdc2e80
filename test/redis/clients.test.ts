// The store works the same with both clients, node-redis and ioredis.
import { randomUUID } from 'node:crypto'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { connectRedis, type RedisConnection } from '../../src/store/redis/client.ts'
import { runScript, Script } from '../../src/store/redis/scripts.ts'

describe.each(['redis', 'ioredis'] as const)('%s', (client) => {
  async function connect(): Promise<RedisConnection> {
    const connection = await connectRedis(inject('redisUrl'), [client])
    onTestFinished(() => connection.close())
    return connection
  }

  test('bytes come back as they were', async () => {
    const connection = await connect()
    const [key, bytes] = [randomUUID(), Buffer.from([0, 10, 13, 128, 255])]
    await connection.send(['HSET', key, 'f', bytes])
    expect(await connection.send(['HGET', key, 'f'])).toEqual(bytes)
    expect(await connection.send(['HGET', key, 'none'])).toBeNull()
    await connection.send(['DEL', key])
  })

  test('a script that the server has forgotten is sent again', async () => {
    const connection = await connect()
    const script = new Script('load.lua', 'no-writes')
    for (const flush of [true, false]) {
      if (flush) await connection.send(['SCRIPT', 'FLUSH'])
      const reply = await runScript(connection, script, [randomUUID()], ['0', '0'])
      expect(reply).toEqual([expect.any(Buffer), Buffer.from('0'), []])
    }
  })

  test('a message arrives on the channel', async () => {
    const connection = await connect()
    const channel = randomUUID()
    const heard = Promise.withResolvers<string>()
    await connection.subscribe(channel, heard.resolve)
    await connection.send(['PUBLISH', channel, 'é'])
    expect(await heard.promise).toBe('é')
  })

  test('an error of the server rejects the command only', async () => {
    const connection = await connect()
    await expect(connection.send(['NO-SUCH-COMMAND'])).rejects.toThrow('unknown command')
    expect(String(await connection.send(['PING']))).toBe('PONG')
  })
})

test('texts of every length, and bytes, reach the script as they are', async () => {
  const connection = await connectRedis(inject('redisUrl'))
  onTestFinished(() => connection.close())
  const key = randomUUID()
  const lengths = [0, 1, 31, 32, 84, 85, 86, 255, 256, 65_535, 65_536, 200_000]
  const values = [...lengths.map((n) => 'é'.repeat(n)), ...lengths.map((n) => Buffer.alloc(n, 255))]
  const commit = new Script('commit.lua', '')
  const fields = values.flatMap((value, n) => [String(n), value])
  const writes = ['1', 'HSET', '2', String(fields.length), ...fields]
  await runScript(connection, commit, [`${key}:meta`, key], ['', '0', '0', '0', ...writes])
  for (const [n, value] of values.entries())
    expect(await connection.send(['HGET', key, String(n)])).toEqual(Buffer.from(value))
  await connection.send(['DEL', key])
})
