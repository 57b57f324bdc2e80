// `phone` is the phone of one person in the browser: it writes to the assistant, and shows what the assistant makes of it.
import { randomUUID } from 'node:crypto'
import type { Page } from '../kit/live-page.ts'
import type { Stage } from '../kit/stage.ts'
import { handedOn } from './domain/handed-on.ts'
import { toWholeSeconds, type Person, type Written } from './stand-in/meta.ts'
import type { World } from './world.ts'

const LINE = '15550199'
const YOU: Person = { name: 'you', userId: 'US.you', phone: '15550100' }
const WAIT = 4_000
const MODEL_TAKES = 4_000

interface Bubble {
  readonly at: number
  readonly from: 'mine' | 'theirs'
  readonly text: string
  readonly state: 'sent' | 'making' | 'aborted'
}

export function phone(stage: Stage<World>): Page {
  const { world, clock } = stage
  const written: (Written & { readonly began: number })[] = []
  let ready: Promise<void> | undefined
  world.model.takes = MODEL_TAKES

  const post = async (message: Written): Promise<void> => {
    const { status } = await stage.send('/in/whatsapp', world.meta.webhook(LINE, [message]))
    if (status !== 200) throw new Error(`The app responded to Meta with ${status}.`)
  }
  return {
    folder: new URL('page/', import.meta.url),
    async state() {
      const lane = await stage.app.admin.lanes.get('answer', `${LINE}:${LINE}:${YOU.userId}`)
      const open = (lane?.waiting ?? 0) + (lane?.run?.events ?? 0)
      const isWaiting = lane !== undefined && lane.run === undefined
      return {
        chat: bubbles(world, written),
        handedOn: open === 0 ? '' : preview(written.slice(-open)),
        dueIn: isWaiting ? Math.max(0, lane.due - clock.now()) : null,
        waits: WAIT,
        killed: stage.workers.killed,
      }
    },
    actions: {
      write: async (body) => {
        await (ready ??= configure(stage))
        const message = { person: YOU, id: `wamid.you.${randomUUID()}`, text: String(body), at: clock.now() }
        written.push({ ...message, began: clock.monotonic() })
        await post(message)
      },
      retry: async () => {
        const last = written.at(-1)
        if (last !== undefined) await post(last)
      },
      kill: () => stage.workers.replace(),
    },
  }
}

/** The text that the model will get for these messages. */
export function preview(written: readonly Written[]): string {
  return handedOn(written.map(({ text = '', at }) => ({ text, at: toWholeSeconds(at) }))).text
}

async function configure(stage: Stage<World>): Promise<void> {
  const { secret } = await stage.app.admin.keys.create({ name: `phone-${randomUUID()}`, role: 'operate' })
  const settings = { wait_time_before_replying_ms: WAIT, natural_delays_enabled: false }
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  const init = { method: 'PATCH', headers, body: JSON.stringify(settings) }
  const { status } = await stage.send(`/settings/${LINE}`, init)
  if (status !== 200) throw new Error(`The app responded with ${status} to new settings.`)
}

/** The messages, the answers, and the answers that were given up half-made, as they came. */
function bubbles({ model, outbox }: World, written: readonly { text?: string; began: number }[]): readonly Bubble[] {
  const mine = written.map(({ text = '', began: at }): Bubble => ({ at, from: 'mine', text, state: 'sent' }))
  const made = model.drafts.flatMap(({ asked: at, state, reply, made: share }): readonly Bubble[] => {
    const text = `${reply.slice(0, Math.ceil(share * reply.length))}…`
    return state === 'making' || state === 'aborted' ? [{ at, from: 'theirs', text, state }] : []
  })
  const sent = outbox.sent.map(({ at, text }): Bubble => ({ at, from: 'theirs', text, state: 'sent' }))
  return [...mine, ...made, ...sent].toSorted((one, other) => one.at - other.at)
}
