// The assistant in real time, on four processes and one PostgreSQL. The full form is `npm run prove -- whatsapp-assistant`.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { assistant } from '../../../examples/whatsapp-assistant/example.ts'
import { SEED } from '../../../examples/whatsapp-assistant/scenarios/seed.ts'
import type { World } from '../../../examples/whatsapp-assistant/world.ts'
import { Stage } from '../../../examples/kit/stage.ts'
import { startServer, type Server } from '../../postgres/server.ts'
import { conversations } from './conversations.ts'
import { judge, wrongs } from './judge.ts'

let server: Server

beforeAll(async () => {
  server = await startServer({ version: 18, settings: { max_connections: '200' } })
})

afterAll(() => server.stop())

describe('the assistant on four processes', () => {
  it('answers each message exactly once, while processes are killed and their clocks are off by up to an hour', async () => {
    const seed = Number(process.env['SEED'] ?? 7)
    const kills = [4_000, 9_000, 14_000]
    const result = await conversations({ store: server.tcpUrl, seed, people: 200, ms: 15_000, kills })
    expect(wrongs(result), `SEED=${seed}`).toEqual([])
    expect(result).toMatchObject({ killed: 3, deadLetters: 0 })
    expect(result.messages).toBeGreaterThan(800)
    expect(result.retries).toBeGreaterThan(100)
    // The faults were played.
    expect(result.failedLate).toBeGreaterThan(0)
    expect(result.sentAgainAfterTimeout).toBeGreaterThan(0)
  }, 400_000)
})

describe('the tests of the design', () => {
  let stage: Stage<World>

  beforeAll(async () => {
    stage = await Stage.open(assistant, { store: `${server.tcpUrl}?schema=design`, workers: 4 })
  })

  afterAll(() => stage.close())

  it.each(Object.entries(SEED))('%s, in real time on four processes', async (_, scenario) => {
    const before = stage.checks.length
    await stage.play(scenario)
    const checks = stage.checks.slice(before)
    expect(checks.filter(({ held }) => !held)).toEqual([])
    expect(checks).not.toEqual([])
  })
})

describe('the judge', () => {
  const [ada, ben] = ['551', '552']
  const written = ['p1m0', 'p1m1', 'p1m2', 'p2m0', 'p2m1'].map((text) => ({
    text,
    phone: text.startsWith('p1') ? ada : ben,
  }))
  const sent = (run: string, text: string, to = ada) => ({ run, to, text })
  const none = new Set<string>()

  it('finds nothing wrong with one answer to each message', () => {
    const received = [sent('a', 'p1m0\n[+1s] p1m1'), sent('b', 'p1m2'), sent('c', 'p2m0\n[+1s] p2m1', ben)]
    expect(wrongs(judge({ written, received, interrupted: none, timedOut: none }))).toEqual([])
  })

  it('notices a message without an answer, one with two, mixed ones, and an answer to somebody else', () => {
    const received = [
      sent('a', 'p1m0\n[+1s] p1m1'),
      sent('b', 'p1m1'),
      sent('c', 'p1m2\n[+1s] p2m0'),
      sent('d', 'p1m1\n[+1s] p1m0', ben),
    ]
    const found = judge({ written, received, interrupted: none, timedOut: none })
    expect(found).toMatchObject({
      answers: 4,
      unanswered: ['p2m1'],
      answeredTwice: ['p1m0', 'p1m1'],
      mixed: ['p1m2\n[+1s] p2m0', 'p1m1\n[+1s] p1m0'],
      misdirected: ['551: p1m2\n[+1s] p2m0', '552: p1m1\n[+1s] p1m0'],
    })
  })

  it('excuses an answer that was sent again only by a kill or a timeout of its own run, once for each', () => {
    const twice = (run: string, text: string) => [sent(run, text), sent(run, text)]
    const received = [
      ...twice('killed', 'p1m0'),
      ...twice('timed out', 'p1m1'),
      ...twice('neither', 'p1m2'),
      ...twice('both', 'p2m0'),
      sent('both', 'p2m0'),
      ...twice('killed too', 'p2m1'),
      sent('killed too', 'another text'),
    ]
    const interrupted = new Set(['killed', 'both', 'killed too', 'a run that was not sent again'])
    const timedOut = new Set(['timed out', 'both'])
    expect(judge({ written, received, interrupted, timedOut })).toMatchObject({
      sentAgainAfterKill: 3,
      sentAgainAfterTimeout: 1,
      sentAgainWithoutReason: ['neither', 'killed too'],
      changed: ['killed too'],
    })
  })
})
