// Conversations of many people with the assistant, on four processes and one PostgreSQL. People type at random, providers repeat their
// webhooks, processes are killed, and the clock of each process is off by up to an hour.
import { setTimeout as sleep } from 'node:timers/promises'
import { assistant } from '../../../examples/whatsapp-assistant/example.ts'
import { ENV, type World } from '../../../examples/whatsapp-assistant/world.ts'
import { chance, type Chance } from '../../../examples/kit/chance.ts'
import { Stage } from '../../../examples/kit/stage.ts'

export interface ConversationOptions {
  readonly store: string
  readonly seed: number
  readonly people: number
  /** People begin to write within this time. */
  readonly ms: number
  /** When a process is killed in the middle of a run, in milliseconds since the start. */
  readonly kills: readonly number[]
  readonly progress?: (text: string) => void
}

/** What the stand-in for Meta saw. */
export interface ConversationResult {
  readonly messages: number
  readonly retries: number
  readonly answers: number
  readonly killed: number
  /** Messages that no answer contains. */
  readonly unanswered: readonly string[]
  /** Messages that answers of two runs contain. */
  readonly answeredTwice: readonly string[]
  /** Answers with messages in another order than they were written in, or of another person. */
  readonly mixed: readonly string[]
  /** Answers that a run sent again, because its process died between the send and its record. */
  readonly sentAgain: number
  readonly deadLetters: number
}

/** Lines with the different settings. */
const LINES = {
  '2001': { message_reset_enabled: true, typing_indicator_enabled: false },
  '2002': { message_reset_enabled: true, typing_indicator_enabled: true },
  '2003': { message_reset_enabled: false, typing_indicator_enabled: false },
} as const
/** The flows that an answer depends on. An indicator may fail. */
const FLOWS = ['inbox', 'answer', 'fallback']
const WAIT = 1_500
const PROCESSES = 4
const TOKEN = /p\d+m\d+/g

export async function conversations(options: ConversationOptions): Promise<ConversationResult> {
  const example = { ...assistant, options: { lease: '3s', heartbeat: '1s', shutdownTimeout: '5s' } } as const
  const env = { ...ENV, CLOCKS_OFF: 'yes', MODEL_RATE: '500' }
  const stage = await Stage.open<World>(example, { store: options.store, env, workers: PROCESSES })
  try {
    return await play(stage, options)
  } finally {
    await stage.close()
  }
}

async function play(stage: Stage<World>, options: ConversationOptions): Promise<ConversationResult> {
  const { people, ms, kills, seed, progress = () => {} } = options
  const { meta, model, outbox } = stage.world
  Object.assign(meta, { takes: 100 })
  Object.assign(model, { takes: 300 })
  const { secret } = await stage.app.admin.keys.create({ name: 'conversations', role: 'operate' })
  for (const [line, change] of Object.entries(LINES)) await configure(stage, line, secret, change)

  const random = chance(seed)
  const counts = { messages: 0, retries: 0 }
  const typing = Array.from({ length: people }, (_, n) => {
    const line = Object.keys(LINES)[n % 3] ?? ''
    return converse(stage, { n, line, begin: random.between(0, ms), random: chance(seed + n), counts })
  })
  const killing = kills.map(async (at) => {
    await sleep(at)
    await stage.workers.killBusy()
    await stage.workers.start()
    progress(`${stage.workers.killed} killed, ${outbox.sent.length} answers`)
  })
  const written = (await Promise.all(typing)).flat()
  await Promise.all(killing)
  progress(`${written.length} messages written`)
  await stage.idle({ flows: FLOWS, within: 120_000 })
  const dead = await Promise.all(FLOWS.map((flow) => stage.app.admin.deadLetters.list({ flow })))
  const deadLetters = dead.reduce((sum, { items }) => sum + items.length, 0)
  return { ...judge(stage.world, written), ...counts, killed: stage.workers.killed, deadLetters }
}

async function configure(stage: Stage<World>, line: string, key: string, change: object): Promise<void> {
  const settings = { wait_time_before_replying_ms: WAIT, natural_delays_enabled: false, ...change }
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const init = { method: 'PATCH', headers, body: JSON.stringify(settings) }
  const { status } = await stage.send(`/settings/${line}`, init)
  if (status !== 200) throw new Error(`The app responded with ${status} to new settings.`)
}

interface Conversation {
  readonly n: number
  readonly line: string
  readonly begin: number
  readonly random: Chance
  readonly counts: { messages: number; retries: number }
}

/** One to three bursts of one to five messages. Some gaps are longer than the wait, and some end while the model works. */
async function converse(stage: Stage<World>, conversation: Conversation): Promise<readonly string[]> {
  const { n, line, begin, random, counts } = conversation
  const person = { name: `p${n}`, userId: `US.p${n}`, phone: `55${n.toString().padStart(9, '0')}` }
  const written: string[] = []
  const retries: Promise<void>[] = []
  await sleep(begin)
  for (let burst = random.between(1, 3); burst > 0; burst--) {
    for (let left = random.between(1, 5); left > 0; left--) {
      const text = `p${n}m${written.length}`
      const webhook = stage.world.meta.webhook(line, [{ person, id: `wamid.${text}`, text, at: stage.clock.now() }])
      await deliver(stage, webhook)
      counts.messages++
      written.push(text)
      if (random.hits(0.2)) {
        counts.retries++
        const after = random.between(0, 4_000)
        retries.push(sleep(after).then(() => deliver(stage, webhook)))
      }
      await sleep(random.between(20, 700))
    }
    await sleep(random.between(500, 3_000))
  }
  await Promise.all(retries)
  return written
}

/** Meta sends again until it gets a 200. A process that is killed gives none. */
async function deliver(stage: Stage<World>, webhook: RequestInit): Promise<void> {
  for (;;) {
    const status = await stage.send('/in/whatsapp', webhook).then(
      (response) => response.status,
      () => 0,
    )
    if (status === 200) return
    await sleep(200)
  }
}

type Judgement = Pick<ConversationResult, 'answers' | 'unanswered' | 'answeredTwice' | 'mixed' | 'sentAgain'>

export function judge({ outbox }: Pick<World, 'outbox'>, written: readonly string[]): Judgement {
  const runsOf = new Map<string, Set<string>>()
  const answers = new Set<string>()
  const mixed: string[] = []
  for (const { run, text } of outbox.sent) {
    const tokens = text.match(TOKEN) ?? []
    answers.add(run)
    for (const token of tokens) runsOf.set(token, (runsOf.get(token) ?? new Set()).add(run))
    if (!isInOrder(tokens)) mixed.push(text)
  }
  return {
    answers: answers.size,
    unanswered: written.filter((token) => !runsOf.has(token)),
    answeredTwice: [...runsOf].flatMap(([token, runs]) => (runs.size > 1 ? [token] : [])),
    mixed,
    sentAgain: outbox.sent.length - answers.size,
  }
}

/** Messages of one person, which follow each other without a gap. */
function isInOrder(tokens: readonly string[]): boolean {
  const [first, ...rest] = tokens.map((token) => token.slice(1).split('m').map(Number) as [number, number])
  return first !== undefined && rest.every(([person, n], at) => person === first[0] && n === first[1] + at + 1)
}
