// Answers each person once they have stopped typing, with one answer to everything they wrote.
import { defineEvent, done, drop, PermanentError, Sluice, snooze, type FlowEvent } from 'sluice'
import { twilio, whatsapp } from 'sluice/sources'
import type { Surroundings } from '../kit/example.ts'
import { metaChannel, twilioChannel } from './channels.ts'
import { handedOn } from './domain/handed-on.ts'
import { senderOf, toMessage, type ChatMessage } from './domain/message.ts'
import { naturalDelay } from './domain/natural-delay.ts'
import { askModel } from './model.ts'
import { settingsRoutes } from './settings-routes.ts'
import { settingsTable } from './settings-table.ts'

const chatMessage = defineEvent<ChatMessage>('chat.message')
const runDead = defineEvent<{ readonly flow: string; readonly deadLetter: string }>('sluice/run.dead')
/** Meta and Twilio accept free text only so long after the person's last message. */
const ANSWERABLE_MS = 24 * 3_600_000
const TWILIO_STATUSES = ['queued', 'sent', 'delivered', 'read', 'undelivered', 'failed']

export function build({ store, env, options, url, clock, watch }: Surroundings): Sluice {
  const app = new Sluice({ store, ...options })
  const secret = (name: string): string => env[name] ?? ''
  const settings = settingsTable({ store, watch })
  const limit = app.limit('send', { rate: 80, per: '1s', maxWait: '1m' })
  const meta = metaChannel({ url: url('meta'), token: secret('META_TOKEN'), limit })
  const authToken = secret('TWILIO_AUTH_TOKEN')
  const channels = {
    meta,
    twilio: twilioChannel({ url: url('twilio'), typingUrl: url('twilio-typing'), authToken, limit }),
  }
  const modelLimit = app.limit('model', { rate: Number(env['MODEL_RATE'] ?? 50), per: '1s', maxWait: '1m' })
  const model = {
    url: url('model'),
    key: secret('MODEL_KEY'),
    name: env['MODEL_NAME'] ?? 'gpt-5-mini',
    limit: modelLimit,
  }

  app.source('whatsapp', whatsapp({ secret: secret('META_APP_SECRET'), verifyToken: secret('META_VERIFY_TOKEN') }))
  app.source(
    'twilio',
    twilio({ secret: authToken, ...(env['TWILIO_WEBHOOK_URL'] && { url: env['TWILIO_WEBHOOK_URL'] }) }),
  )
  settingsRoutes(app, settings)

  // A lane's key and window cannot be read from a table, so this flow reads them and publishes the message with them.
  app.flow('inbox', {
    on: ['whatsapp/message.*', 'twilio/message.received'],
    key: senderOf,
    retry: { first: '1s', cap: '2m', retries: 800 },
    run: async ({ events, tenant, publish, count }) => {
      const messages = events.flatMap((event) => toMessage(event) ?? [])
      if (messages.length < events.length) count('without-answer', events.length - messages.length)
      const found = await settings.of(messages.map(({ line }) => line))
      for (const [n, message] of messages.entries()) {
        const own = found[n]
        if (own === undefined) throw new Error(`The line ${message.line} has no settings.`)
        publish(chatMessage({ ...message, settings: own }, { tenant, subject: message.person, time: message.at }))
      }
    },
  })

  app.flow('answer', {
    on: chatMessage,
    key: laneOf,
    window: (event) => {
      const {
        wait_time_before_replying_ms: wait,
        longest_wait_ms: max,
        message_reset_enabled: resets,
      } = event.data.settings
      return resets ? { quiet: wait, max } : { every: wait }
    },
    whileRunning: (event) => (event.data.settings.message_reset_enabled ? 'cancel' : 'window'),
    retry: ['1s', '5s', '30s'],
    run: async ({ id, attempt, events, signal, commit, sleep }) => {
      const messages = events.map(({ data }) => data)
      const last = lastOf(messages)
      if (!last.settings.message_reset_enabled && (await commit()) === 'cancelled') return
      if (isTooLate(messages, clock.now())) throw new PermanentError('The person wrote more than 24 hours ago.')
      const reply = await askModel(model, handedOn(messages), last.settings.prompt, signal)
      if (last.settings.natural_delays_enabled && attempt === 1) await sleep(naturalDelay(reply, last.settings, id))
      if ((await commit()) === 'cancelled') return
      await channels[last.channel].send(last, reply, { id, signal })
    },
  })

  // A run that failed for good is an event as well, stored in the commit that makes it dead.
  app.flow('fallback', {
    on: runDead,
    key: ({ data: { flow, deadLetter } }) => (flow === 'answer' ? deadLetter : undefined),
    retry: { first: '1s', cap: '2m', retries: 800 },
    run: async ({ id, key, signal }) => {
      const letter = await app.admin.deadLetters.show(key)
      const last = letter?.contents.map(({ data }) => chatMessage.parse(data)).at(-1)
      if (last === undefined || last.settings.fallback_text === '') return drop('There is nothing to send.')
      if (isTooLate([last], clock.now())) return drop('The person wrote more than 24 hours ago.')
      await channels[last.channel].send(last, last.settings.fallback_text, { id, signal })
      return done
    },
  })

  app.flow('typing', {
    on: chatMessage,
    key: laneOf,
    retry: ['2s', '5s'],
    run: async ({ key, events, signal }) => {
      const last = lastOf(events.map(({ data }) => data))
      const isPending = (await app.admin.lanes.get('answer', key)) !== undefined
      if (!isPending || !last.settings.typing_indicator_enabled) return
      if (!(await channels[last.channel].showTyping(last, signal))) return drop('The provider showed no indicator.')
      return snooze({ after: '20s' })
    },
  })

  app.flow('statuses', {
    on: ['whatsapp/status.*', ...TWILIO_STATUSES.map((status) => `twilio/message.${status}`)],
    key: ({ source, type }) => `${source} ${type}`,
    batch: '10s',
    run: ({ key, events, count }) => count(key, events.length),
  })
  return app
}

/** A run has at least one event. */
function lastOf(messages: readonly ChatMessage[]): ChatMessage {
  const last = messages.at(-1)
  if (last === undefined) throw new PermanentError('The messages of the run were purged.')
  return last
}

/** One lane per tenant, conversation flow and person. */
function laneOf({ tenant, subject, data }: FlowEvent<ChatMessage>): string {
  return `${tenant}:${data.settings.flow_id}:${subject}`
}

function isTooLate(messages: readonly ChatMessage[], now: number): boolean {
  return now - Math.max(...messages.map(({ at }) => at)) > ANSWERABLE_MS
}
