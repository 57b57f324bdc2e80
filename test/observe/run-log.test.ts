// The log of a handler: each entry names its run, cannot imitate another one, and hides what the log hides.
import { describe, expect, it } from 'vitest'
import { createRunLog } from '../../src/observe/log/log.ts'
import { NAME, scene } from './log-scene.ts'

describe('the log of a run', () => {
  it('names its run at every level', () => {
    const t = scene({ level: 'debug' })
    const log = createRunLog(t.logger, NAME)
    log.debug('one')
    log.info('two', { n: 2 })
    log.warn('three 100% %s')
    log.error('four')
    expect(t.entries().map(({ time: _time, ...entry }) => entry)).toEqual([
      { level: 20, ...NAME, msg: 'one' },
      { level: 30, ...NAME, n: 2, msg: 'two' },
      { level: 40, ...NAME, msg: 'three 100% %s' },
      { level: 50, ...NAME, msg: 'four' },
    ])
  })

  it('cannot imitate another run, level or time', () => {
    const t = scene()
    createRunLog(t.logger, NAME).info('hello', { level: 60, time: 0, msg: 'forged', run: 'r2', flow: 'g' })
    const line = t.text()
    expect(JSON.parse(line)).toMatchObject({ level: 30, msg: 'hello', run: 'r1', flow: 'f', run_: 'r2', level_: 60 })
    expect(line.match(/"(?:level|time|msg|run|flow)":/g)).toHaveLength(5)
  })

  it('hides what its logger hides', () => {
    const t = scene({ redact: ['email', 'user.name'] })
    createRunLog(t.logger, NAME).info('Bearer abc', {
      user: { name: 'Ada', Email: 'a@b.c', name_of: 'x' },
      apiKey: 'k',
      name: 'shown',
    })
    expect(t.entries()[0]).toMatchObject({
      msg: 'Bearer [redacted]',
      user: { name: '[redacted]', Email: '[redacted]', name_of: 'x' },
      apiKey: '[redacted]',
      name: 'shown',
    })
  })

  it('accepts anything: errors, cycles, bytes and huge objects', () => {
    const t = scene()
    const loop: Record<string, unknown> = { error: new Error('password=hunter2'), big: 1n, at: new Date(0) }
    loop['bytes'] = new Uint8Array(9)
    loop['self'] = loop
    loop['heap'] = Array.from({ length: 100 }, () => Array.from({ length: 100 }, () => ({ a: [1, 2, 3] })))
    createRunLog(t.logger, NAME).info(undefined as never, loop)
    const text = t.text()
    expect(text.length).toBeLessThan(20_000)
    expect(JSON.parse(text)).toMatchObject({
      msg: 'undefined',
      error: { name: 'Error', message: 'password=[redacted]' },
      bytes: '[9 bytes]',
      big: '1',
      at: '1970-01-01T00:00:00.000Z',
    })
  })
})
