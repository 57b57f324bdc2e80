// Tests that no spelling of a forbidden address leads to a connection. A listener on all addresses proves it, not an
// error.
import { Agent, request } from 'undici'
import { expect, onTestFinished, test } from 'vitest'
import { forbiddenUrls } from './forbidden.ts'
import { fuzzedUrls, hostileLookup } from './fuzzed-urls.ts'
import { everywhere, poster } from './listener.ts'

const SEED = 20_261_116
const FUZZED = 10_000
const AT_ONCE = 50

async function forAll(urls: readonly string[], call: (url: string) => Promise<unknown>): Promise<void> {
  const left = [...urls]
  const worker = async (): Promise<void> => {
    for (let url = left.pop(); url !== undefined; url = left.pop()) await call(url)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

test('without the guard most spellings of this machine reach the listener', async () => {
  const listener = await everywhere()
  const agent = new Agent({
    connect: {
      timeout: 2_000,
      lookup: (_name, options, call) =>
        options.all === true ? call(null, [{ address: '127.0.0.1', family: 4 }]) : call(null, '127.0.0.1', 4),
    },
  })
  onTestFinished(async () => agent.destroy())
  const own = [...forbiddenUrls(listener.port).slice(0, 60), ...fuzzedUrls(300, SEED, listener.port)].filter(isOwn)
  await forAll(own, async (url) => request(url, { dispatcher: agent }).catch(() => undefined))
  expect(own.length).toBeGreaterThan(150)
  expect(listener.connections()).toBeGreaterThan(own.length / 2)
})

/** The test itself must not connect to any other machine. */
function isOwn(url: string): boolean {
  return URL.canParse(url) && /^(?:127\.|0\.0\.0\.0$|\[::1?\]$|.*[a-z]$)/.test(new URL(url).hostname)
}

test('D3 no URL of the fixture reaches the listener', async () => {
  const listener = await everywhere()
  const { post } = poster({ lookup: hostileLookup })
  const urls = forbiddenUrls(listener.port)
  expect(new Set(urls).size).toBeGreaterThanOrEqual(150)
  const ends = await Promise.all(urls.map(async (url) => ({ url, end: await post({ url }) })))
  const others = ends.filter(({ end }) => end.kind !== 'failed' || end.why !== 'guarded')
  expect(others).toEqual([])
  // One message for all, so that it does not reveal where a service listens.
  expect(new Set(ends.map(({ end }) => (end.kind === 'failed' ? end.error : '')))).toEqual(
    new Set(['The destination is not allowed.']),
  )
  expect(listener.connections()).toBe(0)
})

test(`D3 none of ${FUZZED} fuzzed URLs reaches the listener, even if only the agent checks them`, async () => {
  const listener = await everywhere()
  const { post, agent } = poster({ lookup: hostileLookup })
  const urls = fuzzedUrls(FUZZED, SEED, listener.port)
  const ends = new Map<string, number>()
  await forAll(urls, async (url) => {
    const end = await post({ url })
    const name = end.kind === 'failed' ? end.why : end.kind
    ends.set(name, (ends.get(name) ?? 0) + 1)
  })
  // Rejected by the text of the URL, or by the address of its name.
  expect([...ends.keys()].toSorted()).toEqual(['dns', 'guarded'])
  const parsed = urls.filter((url) => URL.canParse(url))
  expect(parsed.length).toBeGreaterThan(FUZZED / 2)
  let reached = 0
  await forAll(parsed, async (url) =>
    request(url, { dispatcher: agent, method: 'POST' }).then(
      () => reached++,
      () => undefined,
    ),
  )
  expect(reached).toBe(0)
  expect(listener.connections()).toBe(0)
})
