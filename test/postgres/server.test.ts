// Checks the servers of the tests: they have the right version and keep what was committed.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { startServer } from './server.ts'

const OWN = [15, 18] as const

async function ask<Row>(url: string, sql: string): Promise<readonly Row[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(sql)).rows as readonly Row[]
  } finally {
    await client.end()
  }
}

describe.each(inject('postgresServers'))('$name', ({ name, url, tcpUrl }) => {
  test.each([url, tcpUrl])('responds through each address with its version', async (way) => {
    const [row] = await ask<{ readonly server_version_num: string }>(way, 'show server_version_num')
    const major = Math.floor(Number(row?.server_version_num) / 10_000)
    expect(major).toBeGreaterThanOrEqual(15)
    if (name !== 'PostgreSQL of DATABASE_URL') expect(name).toBe(`PostgreSQL ${major}`)
  })
})

describe.each(OWN)('PostgreSQL %i of one test', (version) => {
  test('has committed data after a kill and a restart, and leaves nothing behind when it is stopped', async () => {
    const server = await startServer({ version })
    onTestFinished(() => server.stop())
    await ask(server.url, 'create table kept (n int)')
    await ask(server.url, 'insert into kept select generate_series(1, 1000)')
    const open = new Client({ connectionString: server.url })
    const lost = new Promise((resolve) => open.on('error', resolve))
    await open.connect()
    await open.query('begin')
    await open.query('insert into kept values (1001)')
    const before = server.pid
    expect(readFileSync(join(server.folder, 'data', 'postmaster.pid'), 'utf8').split('\n')[0]).toBe(String(before))

    await server.kill()
    await lost
    expect(server.pid).toBeUndefined()
    await expect(ask(server.url, 'select 1')).rejects.toThrow()

    await server.restart()
    expect(server.pid).not.toBe(before)
    for (const way of [server.url, server.tcpUrl]) {
      expect(await ask(way, 'select count(*)::int as rows, max(n) from kept')).toEqual([{ rows: 1000, max: 1000 }])
    }

    await server.kill()
    await server.stop()
    expect(existsSync(server.folder)).toBe(false)
  })
})
