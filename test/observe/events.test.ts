// A listener that fails does not affect the work and other listeners, and is reported once.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Emitter, type EventMap } from '../../src/observe/emitter.ts'
import { scene } from './log-scene.ts'

const LOST = { error: 'no' }

/** Rejections that would have ended the process. */
let unhandled: unknown[] = []
const note = (reason: unknown): void => void unhandled.push(reason)

beforeEach(() => {
  unhandled = []
  process.on('unhandledRejection', note)
})

afterEach(() => void process.off('unhandledRejection', note))

/** Unhandled rejections are reported after the microtasks of a turn. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

// The name is built from parts so that the linter does not take it for an accidental thenable.
const THEN = ['th', 'en'].join('')

const FAULTS: readonly (readonly [string, () => unknown])[] = [
  ['throws', () => expect.fail('mine')],
  ['is async and rejects', async () => expect.fail('mine')],
  ['rejects later', () => turn().then(() => expect.fail('mine'))],
  ['returns a thenable that rejects', () => ({ [THEN]: (_ok: unknown, bad: () => void) => bad() })],
  ['returns an object whose then throws', () => Object.defineProperty({}, THEN, { get: () => expect.fail('mine') })],
  ['rejects with undefined', () => Promise.reject(undefined)],
]

function alertsOf(emitter: Emitter): EventMap['alert.raised'][] {
  const heard: EventMap['alert.raised'][] = []
  emitter.on('alert.raised', (what) => void heard.push(what))
  return heard
}

test('a listener of a name that is not emitted is rejected, with the name that was meant', async () => {
  const emitter = new Emitter()
  const wrong = 'run.donne' as 'run.done'
  const message = 'the name of an event must be one that the app emits; got "run.donne". Did you mean run.done?'
  expect(() => emitter.on(wrong, () => {})).toThrow(message)
  await expect(emitter.once(wrong)).rejects.toThrow(message)
})

describe.each(FAULTS)('a listener that %s', (_name, fault) => {
  test('affects nothing else, and is reported once', async () => {
    const emitter = new Emitter()
    const alerts = alertsOf(emitter)
    const heard: string[] = []
    emitter.on('store.lost', fault)
    emitter.on('store.lost', () => void heard.push('after it'))
    emitter.onAny((name) => void heard.push(name))
    emitter.emit('store.lost', LOST)
    emitter.emit('store.lost', LOST)
    expect(heard.filter((one) => one !== 'alert.raised')).toEqual(['after it', 'store.lost', 'after it', 'store.lost'])
    await turn()
    await turn()
    expect(unhandled).toEqual([])
    expect(alerts).toMatchObject([{ alert: 'listener', text: expect.stringContaining('store.lost') as string }])
  })

  test('may listen to everything, even to its own failure', async () => {
    const emitter = new Emitter()
    const alerts = alertsOf(emitter)
    emitter.onAny(fault)
    emitter.on('alert.raised', fault)
    emitter.emit('store.lost', LOST)
    await turn()
    await turn()
    expect(unhandled).toEqual([])
    expect(alerts).toHaveLength(1)
  })
})

test('each failing listener is reported, and the log entry contains no secrets', async () => {
  const t = scene()
  t.emitter.on('run.cancelled', async () => expect.fail('token=abc'))
  t.emitter.on('run.cancelled', () => expect.fail('mine'))
  t.emitter.emit('run.cancelled', { flow: 'f', key: 'k', run: 'r', tenant: '', attempt: 1, events: 1, ms: 1 })
  await turn()
  const entries = t.entries().filter((entry) => entry['msg'] === 'alert.raised')
  expect(entries.map((entry) => entry['level'])).toEqual([40, 40])
  const texts = entries.map((entry) => String(entry['text'])).join('\n')
  expect(texts).toContain('mine')
  expect(texts).not.toContain('abc')
})

test('a listener that returns any other value is not a failure', async () => {
  const emitter = new Emitter()
  const alerts = alertsOf(emitter)
  for (const answer of [1, 'x', null, {}, [], Promise.resolve(1)]) emitter.on('store.lost', () => answer)
  emitter.emit('store.lost', LOST)
  await turn()
  expect(alerts).toEqual([])
})
