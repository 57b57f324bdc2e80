// Answers each person once they have stopped typing, with one answer to everything they wrote.
import { defineEvent, done, type EventInput, drop, PermanentError, Sluice, snooze, type FlowEvent } from 'sluice'
import { twilio, whatsapp } from 'sluice/sources'
import type { Surroundings } from '../kit/example.ts'
import { metaChannel, twilioChannel } from './channels.ts'
import { handedOn } from './domain/handed-on.ts'
import { FINAL_STATUSES, lateFailureOf, reportedId } from './domain/late-failure.ts'
import { senderOf, toMessage, type ChatMessage } from './domain/message.ts'
import { naturalDelay } from './domain/natural-delay.ts'
import { answerableUntil, fallbackFor, type Reply, type SentReply } from './domain/reply.ts'
import { askModel } from './model.ts'
import { settingsRoutes } from './settings-routes.ts'
import { settingsTable } from './settings-table.ts'

const chatMessage = defineEvent<ChatMessage>('chat.message')
const chatReply = defineEvent<Reply>('chat.reply')
const chatSent = defineEvent<SentReply>('chat.sent')
const runDead = defineEvent<{ readonly flow: string; readonly deadLetter: string }>('sluice/run.dead')
/** The flows without which a person gets no answer. */
const ANSWERING: ReadonlySet<string> = new Set(['answer', 'send', 'undelivered'])
/** An outage of a day. */
const PATIENT = { first: '1s', cap: '2m', retries: 800 } as const
/** How often a text that failed later is sent again. */
const RESENDS_MAX = 1
const TOO_LATE = 'The person wrote more than 24 hours ago.'
const TWILIO_STATUSES = ['queued', 'sent', 'delivered', 'read', 'undelivered', 'failed']

export function build({ store, env, options, url, clock, watch }: Surroundings): Sluice {
  const app = new Sluice({ store, ...options })
  const secret = (name: string): string => env[name] ?? ''
  const settings = settingsTable({ store, watch })
  const limit = app.limit('send', { rate: 80, per: '1s', maxWait: '5s' })
  const meta = metaChannel({ url: url('meta'), token: secret('META_TOKEN'), limit })
  const authToken = secret('TWILIO_AUTH_TOKEN')
  const callback = env['TWILIO_WEBHOOK_URL']
  const channels = {
    meta,
    twilio: twilioChannel({ url: url('twilio'), typingUrl: url('twilio-typing'), authToken, callback, limit }),
  }
  const modelLimit = app.limit('model', { rate: Number(env['MODEL_RATE'] ?? 50), per: '1s', maxWait: '1m' })
  const model = {
    url: url('model'),
    key: secret('MODEL_KEY'),
    name: env['MODEL_NAME'] ?? 'gpt-5-mini',
    limit: modelLimit,
  }

  app.source('whatsapp', whatsapp({ secret: secret('META_APP_SECRET'), verifyToken: secret('META_VERIFY_TOKEN') }))
  app.source('twilio', twilio({ secret: authToken, ...(callback !== undefined && { url: callback }) }))
  settingsRoutes(app, settings)

  // A lane's key and window cannot be read from a table, so this flow reads them and publishes the message with them.
  app.flow('inbox', {
    on: ['whatsapp/message.*', 'twilio/message.received'],
    key: senderOf,
    retry: PATIENT,
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
    key: (event) => laneOf(event, event.data),
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
    run: async ({ id, tenant, attempt, events, signal, commit, sleep, publish }) => {
      const messages = events.map(({ data }) => data)
      const last = lastOf(messages)
      if (!last.settings.message_reset_enabled && (await commit()) === 'cancelled') return
      const until = answerableUntil(messages)
      if (clock.now() > until) throw new PermanentError(TOO_LATE)
      const text = await askModel(model, handedOn(messages), last.settings.prompt, signal)
      if (last.settings.natural_delays_enabled && attempt === 1) await sleep(naturalDelay(text, last.settings, id))
      if ((await commit()) === 'cancelled') return
      publish(toEvent({ to: last, text, kind: 'answer', failures: 0, until }, tenant))
    },
  })

  // Answers of one person go out one after the other. If the process dies before it records that one was sent, the same text goes out again.
  app.flow('send', {
    on: chatReply,
    key: (event) => laneOf(event, event.data.to),
    maxEvents: 1,
    timeout: '15s',
    retry: PATIENT,
    run: async ({ id, tenant, events: [event], signal, publish }) => {
      if (event === undefined) return
      const { to, text, until } = event.data
      if (clock.now() > until) throw new PermanentError(TOO_LATE)
      const sentId = await channels[to.channel].send(to, text, { id, signal })
      publish(chatSent({ ...event.data, sentId }, { tenant, subject: to.person }))
    },
  })

  // The lane of a sent message waits for what the provider reports. A report waits a little, because it may be faster than the record.
  app.flow('undelivered', {
    on: [chatSent.type, ...FINAL_STATUSES],
    key: (event) =>
      reportLane(event.tenant, event.type === chatSent.type ? (event.data as SentReply).sentId : reportedId(event)),
    window: ({ type }) => ({ every: type === chatSent.type ? '24h' : '5s' }),
    run: ({ tenant, events, publish }) => {
      const failure = lateFailureOf(events)
      if (failure === undefined) return done
      const sent = events.find(({ type }) => type === chatSent.type)
      if (sent === undefined) return drop('The app has not sent this message, or has dealt with it.')
      const { sentId: _, ...reply } = chatSent.parse(sent.data)
      if (failure.remedy !== 'resend' || reply.failures >= RESENDS_MAX) throw new PermanentError(failure.reason)
      publish(toEvent({ ...reply, failures: reply.failures + 1 }, tenant))
      return done
    },
  })

  // A run that failed permanently results in an event too, stored in the commit that makes it a dead letter.
  app.flow('fallback', {
    on: runDead,
    key: ({ data: { flow, deadLetter } }) => (ANSWERING.has(flow) ? deadLetter : undefined),
    retry: PATIENT,
    run: async ({ key, publish }) => {
      const events = (await app.admin.deadLetters.show(key))?.contents ?? []
      const fallback = fallbackFor(events, clock.now())
      if (typeof fallback === 'string') return drop(fallback)
      publish(toEvent(fallback, events[0]?.tenant))
      return done
    },
  })

  app.flow('typing', {
    on: chatMessage,
    key: (event) => laneOf(event, event.data),
    retry: ['2s', '5s'],
    run: async ({ key, events, signal }) => {
      const last = lastOf(events.map(({ data }) => data))
      const { lanes } = app.admin
      const isPending = ((await lanes.get('answer', key)) ?? (await lanes.get('send', key))) !== undefined
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
function laneOf({ tenant }: Pick<FlowEvent, 'tenant'>, { settings, person }: ChatMessage): string {
  return `${tenant}:${settings.flow_id}:${person}`
}

/** One lane per message that was sent: the app and the provider name it by the same id. */
function reportLane(tenant: string | undefined, id: string | undefined): string | undefined {
  return id === undefined ? undefined : `${tenant}:${id}`
}

function toEvent(reply: Reply, tenant: string | undefined): EventInput {
  return chatReply(reply, { tenant, subject: reply.to.person })
}
