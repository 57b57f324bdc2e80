// The error for an invalid store address does not contain its user or password.
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { openStore } from '../../src/index.ts'
import { isServerAddress } from '../../src/store/open.ts'

const PASSWORD = 'hunter2'

/** Everything that a log, a terminal or an error tracker could show of the error. */
async function shownOf(address: string): Promise<string> {
  const error = await openStore(address).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toMatchObject({ name: 'SluiceError' })
  return `${inspect(error, { depth: null, showHidden: true })} ${JSON.stringify(error)}`
}

describe('the address of a store', () => {
  test.each([
    `postgress://ada:${PASSWORD}@db.test/app`,
    `Postgres//ada:${PASSWORD}@db.test/app`,
    `ada:${PASSWORD}@db.test/app`,
    `${PASSWORD}@db.test`,
    `sqlite:postgres://ada:${PASSWORD}@db.test/app`,
    `sqlite://ada:${PASSWORD}@db.test/app`,
    `sqlite:/ada:${PASSWORD}@db.test/app`,
    `sqlite:ada:${PASSWORD}@db.test/app`,
    `kafka://:${PASSWORD}@db.test`,
    `redis://ada:${PASSWORD}#1@db.test/0`,
    `redis://ada:1/${PASSWORD}@db.test/0`,
    `rediss://ada:1?${PASSWORD}@db.test/0`,
    `redis://ada:${PASSWORD}%@db.test/0`,
    `redis://ada@db.test/${PASSWORD}`,
    `postgres://ada:${PASSWORD}#1@db.test/app`,
    `postgres://ada:1/${PASSWORD}@db.test/app`,
    `postgres://ada:1?${PASSWORD}@db.test/app`,
    `postgres://ada:a/${PASSWORD}@db.test/app`,
    `postgres://ada:${PASSWORD}%@db.test/app`,
    `postgres://ada:${PASSWORD}.db.test/app`,
    `postgres://ada@db.test:${PASSWORD}/app`,
    `postgres://ada:${PASSWORD}@db test:99999999/app`,
    `postgres://ada:${PASSWORD}@db.test:543210/app`,
    `postgres://ada:${PASSWORD}@db.test/app?schema=%`,
  ])('%s is refused without its password', async (address) => {
    const shown = await shownOf(address)
    expect(shown).toContain('STORE_UNKNOWN')
    expect(shown).not.toContain(PASSWORD)
  })

  test.each([
    ['memory', 'got "memory".'],
    ['sluice.db', 'got "sluice.db".'],
    ['kafka://localhost', 'begins with "kafka:"'],
    ['postgress://localhost/app', 'begins with "postgress:"'],
    ['sqlite:postgres://localhost/app', 'path after sqlite:; got the address of a server'],
    ['sqlite:', 'got the address of a server, or nothing'],
  ])('%s is named as far as it can hold no password', async (address, text) => {
    expect(await shownOf(address)).toContain(text)
  })

  test.each(['C:\\\\Users\\\\ada@work\\\\app.db', '/home/ada@work/app.db', 'me@home.db', 'a:b/c@d.db'])(
    '%s is a path',
    (path) => {
      expect(isServerAddress(path)).toBe(false)
    },
  )

  test('explains how to write a password with special characters', async () => {
    expect(await shownOf('postgres://ada:a/b@db.test/app')).toContain('encodeURIComponent')
  })
})
