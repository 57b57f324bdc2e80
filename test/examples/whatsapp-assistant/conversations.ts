// Conversations of many people with the assistant, on four processes and one PostgreSQL. People type at random, providers repeat their
// webhooks, report failures late and say too late what they have accepted; processes are killed, and the clock of each is off by up to an hour.
import { setTimeout as sleep } from 'node:timers/promises'
import { assistant } from '../../../examples/whatsapp-assistant/example.ts'
import { ENV, type World } from '../../../examples/whatsapp-assistant/world.ts'
import { chance, type Chance } from '../../../examples/kit/chance.ts'
import { Stage } from '../../../examples/kit/stage.ts'
import type { Sent } from '../../../examples/whatsapp-assistant/stand-in/outbox.ts'
import { judge, type Judgement, type WrittenMessage } from './judge.ts'

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
export interface ConversationResult extends Judgement {
  readonly messages: number
  readonly retries: number
  readonly killed: number
  /** Answers that the provider accepted, and then reported as failed. */
  readonly failedLate: number
  readonly deadLetters: number
}

/** Lines with the different settings. */
const LINES = {
  '2001': { message_reset_enabled: true, typing_indicator_enabled: false, natural_delays_enabled: true },
  '2002': { message_reset_enabled: true, typing_indicator_enabled: true },
  '2003': { message_reset_enabled: false, typing_indicator_enabled: false },
} as const
/** The flows that an answer depends on. An indicator may fail. */
const FLOWS = ['inbox', 'answer', 'send', 'fallback']
const WAIT = 1_500
const PROCESSES = 4
/** Meta's error for trouble of its own, and when it reports that: soon, or before it has responded. */
const TROUBLE = 131_000
/** Longer than the app waits for a response. */
const HANGS = 20_000
const LATE_FAILURES = 0.04
const TIMEOUTS = 0.01

export async function conversations(options: ConversationOptions): Promise<ConversationResult> {
  const env = { ...ENV, CLOCKS_OFF: 'yes', MODEL_RATE: '500' }
  const stage = await Stage.open<World>(assistant, { store: options.store, env, workers: PROCESSES })
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
  const faults = playFaults(stage, chance(seed + people))
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
  const evaluate = (): Judgement => {
    const received = outbox.sent.filter(({ id }) => !faults.failed.has(id))
    return judge({ written, received, interrupted: stage.workers.interrupted, timedOut: faults.timedOut })
  }
  await stage.idle({ flows: FLOWS, within: 120_000 })
  // A failure may be reported after everything else is done, and the answer is then sent again.
  const isAnswered = async (): Promise<boolean> => faults.reporting === 0 && evaluate().unanswered.length === 0
  await stage.until('everybody is answered', isAnswered, 60_000).catch((error: Error) => progress(error.message))
  await stage.idle({ flows: FLOWS, within: 60_000 })
  const dead = await Promise.all(FLOWS.map((flow) => stage.app.admin.deadLetters.list({ flow })))
  const deadLetters = dead.reduce((sum, { items }) => sum + items.length, 0)
  return { ...evaluate(), ...counts, killed: stage.workers.killed, failedLate: faults.failed.size, deadLetters }
}

interface Faults {
  /** The ids of messages that were accepted and then failed. */
  readonly failed: ReadonlySet<string>
  readonly timedOut: ReadonlySet<string>
  /** Reports that are on their way. */
  readonly reporting: number
}

/** Some messages fail after Meta has accepted them, and of some it does not say in time that it has. */
function playFaults(stage: Stage<World>, random: Chance): Faults {
  const [seen, failed, timedOut] = [new Set<string>(), new Set<string>(), new Set<string>()]
  const faults = { failed, timedOut, reporting: 0 }
  const report = async (sent: Sent, after: number): Promise<void> => {
    faults.reporting++
    await sleep(after)
    await deliver(stage, stage.world.meta.status(sent, 'failed', TROUBLE))
    faults.reporting--
  }
  stage.world.meta.hangs = (sent) => {
    const isFirst = !seen.has(sent.run)
    seen.add(sent.run)
    if (isFirst && random.hits(TIMEOUTS)) {
      timedOut.add(sent.run)
      return HANGS
    }
    // A message that failed twice is replaced by the fallback text, which is not played here.
    if (isFirst && !isRepeated(stage.world, sent) && random.hits(LATE_FAILURES)) {
      failed.add(sent.id)
      void report(sent, random.between(0, 2_000))
    }
    return 0
  }
  return faults
}

/** Whether the same text was sent to this person before. */
function isRepeated({ outbox }: World, { id, to, text }: Sent): boolean {
  return outbox.sent.some((other) => other.id !== id && other.to === to && other.text === text)
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
async function converse(stage: Stage<World>, conversation: Conversation): Promise<readonly WrittenMessage[]> {
  const { n, line, begin, random, counts } = conversation
  const person = { name: `p${n}`, userId: `US.p${n}`, phone: `55${n.toString().padStart(9, '0')}` }
  const written: WrittenMessage[] = []
  const retries: Promise<void>[] = []
  await sleep(begin)
  for (let burst = random.between(1, 3); burst > 0; burst--) {
    for (let left = random.between(1, 5); left > 0; left--) {
      const text = `p${n}m${written.length}`
      const webhook = stage.world.meta.webhook(line, [{ person, id: `wamid.${text}`, text, at: stage.clock.now() }])
      await deliver(stage, webhook)
      counts.messages++
      written.push({ text, phone: person.phone })
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
