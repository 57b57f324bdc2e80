// The assistant in real time, on four processes and one PostgreSQL. The full form is `npm run prove -- whatsapp-assistant`.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { assistant } from '../../../examples/whatsapp-assistant/example.ts'
import { SEED } from '../../../examples/whatsapp-assistant/scenarios/seed.ts'
import type { World } from '../../../examples/whatsapp-assistant/world.ts'
import { Stage } from '../../../examples/kit/stage.ts'
import { startServer, type Server } from '../../postgres/server.ts'
import { conversations, judge } from './conversations.ts'

const sent = (run: string, text: string) => ({ at: 0, line: '1', to: '1', run, text })
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
    expect(result, `SEED=${seed}`).toMatchObject({
      unanswered: [],
      answeredTwice: [],
      mixed: [],
      deadLetters: 0,
      killed: 3,
    })
    expect(result.messages).toBeGreaterThan(800)
    expect(result.retries).toBeGreaterThan(100)
    // A killed process was sending few answers at most.
    expect(result.sentAgain).toBeLessThanOrEqual(3 * 20)
  })
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
  it('notices a message without an answer, one with two, answers sent again, and mixed ones', () => {
    const outbox = {
      typing: [],
      sent: [
        sent('a', 'You wrote: p1m0\n[+1s] p1m1'),
        sent('a', 'You wrote: p1m0\n[+1s] p1m1'),
        sent('b', 'You wrote: p1m1'),
        sent('c', 'You wrote: p2m0\n[+1s] p3m1'),
        sent('d', 'You wrote: p4m1\n[+1s] p4m0'),
      ],
    }
    expect(judge({ outbox }, ['p1m0', 'p1m1', 'p2m0', 'p2m1'])).toEqual({
      answers: 4,
      unanswered: ['p2m1'],
      answeredTwice: ['p1m1'],
      mixed: ['You wrote: p2m0\n[+1s] p3m1', 'You wrote: p4m1\n[+1s] p4m0'],
      sentAgain: 1,
    })
  })
})
