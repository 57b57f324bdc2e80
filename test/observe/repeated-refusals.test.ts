// Many refused requests do not fill the log: it has ten entries of each kind per minute, and one with the number of the others.
import { describe, expect, it } from 'vitest'
import { githubHook, opened, withGithub } from '../receive/scene.ts'
import { scene } from './log-scene.ts'

const FORGED = { event: 'e', source: 'github', type: '', field: 'SIGNATURE_WRONG', fix: 'Compare the secret.' }
const UNKNOWN = { ...FORGED, source: '', field: 'SOURCE_UNKNOWN' }
const MINUTE = 60_000

/** The entries since the last call. */
function collected() {
  let lines: string[] = []
  const entries = (): readonly unknown[] => {
    const now = lines
    lines = []
    return now.map((line) => JSON.parse(line) as unknown)
  }
  return { destination: { write: (line: string) => lines.push(line) } as never, entries }
}

function emitting() {
  const { destination, entries } = collected()
  const { emitter, clock } = scene({ destination })
  const refuse = (times: number, what = FORGED): void => {
    for (let n = 0; n < times; n++) emitter.emit('event.refused', what)
  }
  return { emitter, refuse, clock, entries }
}

describe('refused requests in the log', () => {
  it('are ten of each kind per minute, and one entry for the others when the minute is over', () => {
    const { refuse, entries, clock } = emitting()
    refuse(100_000)
    refuse(12, UNKNOWN)
    const written = entries()
    expect(written.map((entry) => (entry as typeof FORGED).source)).toEqual([
      ...Array(10).fill('github'),
      ...Array(10).fill(''),
    ])
    expect(written[0]).toEqual({ level: 40, time: clock.now(), msg: 'event.refused', ...FORGED })
    clock.advance(MINUTE - 1)
    expect(entries()).toEqual([])
    clock.advance(1)
    const common = { level: 40, time: clock.now(), msg: 'event.refused' }
    expect(entries()).toEqual([
      { ...common, source: 'github', field: 'SIGNATURE_WRONG', repeated: 99_990 },
      { ...common, source: '', field: 'SOURCE_UNKNOWN', repeated: 2 },
    ])
    clock.advance(10 * MINUTE)
    expect(entries()).toEqual([])
  })

  it('are written one by one again in the next minute', () => {
    const { refuse, entries, clock } = emitting()
    refuse(10)
    expect(clock.next()).toBeUndefined()
    clock.advance(MINUTE)
    refuse(11)
    expect(entries()).toHaveLength(20)
    clock.advance(MINUTE)
    expect(entries()).toMatchObject([{ repeated: 1 }])
    refuse(1)
    expect(entries()).toMatchObject([FORGED])
  })

  it('with unknown keys are counted in the same way, over all addresses', () => {
    const { emitter, entries, clock } = emitting()
    for (let n = 0; n < 30; n++) emitter.emit('key.refused', { address: `192.0.2.${n}` })
    expect(entries()).toHaveLength(10)
    clock.advance(MINUTE)
    expect(entries()).toEqual([{ level: 40, time: clock.now(), msg: 'key.refused', repeated: 20 }])
  })

  it('are separate from failed calls of the API, which are counted by error', () => {
    const { emitter, entries, clock } = emitting()
    for (let n = 0; n < 30; n++) emitter.emit('api.failed', { method: 'GET', path: `/v1/${n}`, error: `no ${n % 2}` })
    expect(entries()).toHaveLength(20)
    clock.advance(MINUTE)
    expect(entries()).toMatchObject(
      [0, 1].map((n) => ({ level: 50, msg: 'api.failed', error: `no ${n}`, repeated: 5 })),
    )
  })

  it('of too many sources are counted as one kind', () => {
    const { refuse, entries, clock } = emitting()
    for (let n = 0; n < 2_000; n++) refuse(1, { ...FORGED, source: `s${n}` })
    expect(entries()).toHaveLength(1_010)
    clock.advance(MINUTE)
    expect(entries()).toEqual([{ level: 40, time: clock.now(), msg: 'event.refused', repeated: 990 }])
  })

  it('suppress no other entries', () => {
    const { emitter, entries } = emitting()
    for (let n = 0; n < 50; n++) emitter.emit('alert.raised', { alert: 'a', text: 't' })
    expect(entries()).toHaveLength(50)
  })

  it('of an app that stops are counted before it ends, and no timer stays', async () => {
    const { destination, entries } = collected()
    const { app, clock } = await opened(withGithub, { log: { destination } })
    const heard: string[] = []
    app.on('event.refused', ({ field }) => void heard.push(field))
    for (let n = 0; n < 100; n++) await app.fetch(githubHook('{}', { secret: 'forged' }))
    // Listeners of the app get every event.
    expect([heard.length, entries().length]).toEqual([100, 10])
    await app.stop()
    expect(entries()).toMatchObject([
      { msg: 'event.refused', source: 'github', field: 'SIGNATURE_WRONG', repeated: 90 },
    ])
    for (let n = 0; n < 20; n++) await app.fetch(githubHook('{}'))
    expect(clock.next()).toBeUndefined()
  })
})
