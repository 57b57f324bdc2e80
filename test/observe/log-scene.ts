// Shared by the tests of the log: a log that is written to memory, with a fixed clock.
import { PassThrough } from 'node:stream'
import { Emitter } from '../../src/observe/emitter.ts'
import { createEventLog, type LogOptions, type RunIdentity } from '../../src/observe/log/log.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

export const NAME: RunIdentity = { flow: 'f', key: 'k', run: 'r1', attempt: 1 }

type Entry = Readonly<Record<string, unknown>>

export function scene(options: LogOptions = {}) {
  const out = new PassThrough()
  const clock = new VirtualClock()
  const emitter = new Emitter()
  const logger = createEventLog(emitter, { destination: out, ...options }, clock)
  const text = (): string => String(out.read() ?? '')
  const entries = (): Entry[] =>
    text()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Entry)
  return { out, clock, emitter, logger, text, entries }
}
