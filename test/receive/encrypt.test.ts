// A source with `encrypt`: the store alone reveals neither payload nor request, while handlers get what was sent.
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openStore, Sluice } from '../../src/index.ts'
import { github } from '../../src/sources/index.ts'
import { eventsIn, githubHook, KEY, opened, SECRET } from './scene.ts'
import { ownFolder } from '../temporary-folder.ts'

const BODY = JSON.stringify({ action: 'opened', repository: { full_name: 'secret/plans' }, text: 'nobody reads this' })

function sealed(app: Sluice): Sluice {
  return app.source('github', github({ secret: SECRET }), { encrypt: true })
}

describe('encrypt: true', () => {
  it('keeps payload and request encrypted in the file, and passes them to handlers unchanged', async () => {
    const folder = ownFolder()
    const app = new Sluice({ store: `sqlite:${join(folder, 'sealed.db')}`, encryptionKey: KEY, log: false })
    const texts: string[] = []
    sealed(app).flow('f', {
      on: 'github/**',
      key: (event) => event.subject,
      run: ({ events }) => void texts.push(events[0]?.text ?? ''),
    })
    await app.start()
    const done = app.once('run.done')
    const headers = { 'user-agent': 'one-of-a-kind/7' }
    expect((await app.fetch(githubHook(BODY, { headers }))).status).toBe(202)
    await done
    await app.stop()
    expect(texts).toEqual([BODY])
    const bytes = Buffer.concat(readdirSync(folder).map((file) => readFileSync(join(folder, file)))).toString('latin1')
    expect(bytes).toContain('sluicesealed')
    for (const word of ['nobody reads this', 'one-of-a-kind']) expect(bytes).not.toContain(word)
  })

  it('keeps a delayed event encrypted as well, and publishes it later', async () => {
    const folder = ownFolder()
    const app = new Sluice({ store: `sqlite:${join(folder, 'later.db')}`, encryptionKey: KEY, log: false })
    const texts: string[] = []
    sealed(app).flow('f', { on: 'github/**', run: ({ events }) => void texts.push(events[0]?.text ?? '') })
    const event = { type: 'push', source: 'github', data: 'nobody reads this' }
    await app.publish(event, { at: Date.now() + 3_600_000 })
    await app.publish({ ...event, data: 'nor this' }, { at: Date.now() + 1 })
    const done = Promise.withResolvers<void>()
    app.on('run.done', ({ flow }) => flow === 'f' && done.resolve())
    await app.start()
    await done.promise
    await app.stop()
    expect(texts).toEqual(['"nor this"'])
    const bytes = Buffer.concat(readdirSync(folder).map((file) => readFileSync(join(folder, file)))).toString('latin1')
    for (const word of ['"nobody reads this"', '"nor this"']) {
      expect(bytes).not.toContain(word)
      expect(bytes).not.toContain(Buffer.from(word).toString('base64'))
    }
  })

  it('still tells a duplicate from a conflict', async () => {
    const { app } = await opened(sealed, { encryptionKey: KEY })
    const kinds: string[] = []
    app.onAny((name) => void kinds.push(name))
    for (const body of [BODY, BODY, `${BODY} `]) expect((await app.fetch(githubHook(body))).status).toBe(202)
    expect(kinds).toEqual(['event.received', 'event.unwanted', 'event.duplicate', 'event.conflict'])
  })

  it('shows decrypted dead letters, and events of other sources unchanged', async () => {
    const { app, store } = await opened(
      (one) =>
        sealed(one)
          .source('open', github({ secret: SECRET }))
          .flow('f', {
            on: 'github/**',
            retry: [],
            run: () => {
              throw new Error('no')
            },
          }),
      { encryptionKey: KEY },
    )
    await app.fetch(githubHook(BODY))
    await app.fetch(githubHook(BODY, { url: 'http://hooks.test/in/open' }))
    const [first, second] = await eventsIn(store)
    expect(Buffer.from(first?.body ?? []).includes('nobody')).toBe(false)
    expect(Buffer.from(second?.body ?? []).toString()).toBe(BODY)
  })

  it('decrypts with an older key after a new one was put first, and not without it', async () => {
    const store = await openStore('memory:')
    onTestFinished(() => store.close())
    const texts: string[] = []
    const declare = (app: Sluice): Sluice =>
      sealed(app).flow('f', { on: 'github/**', run: ({ events }) => void texts.push(events[0]?.text ?? '') })
    const first = await opened(declare, { encryptionKey: KEY, store })
    await first.app.fetch(githubHook(BODY))
    const newer = randomBytes(32).toString('base64')
    const without = declare(new Sluice({ store, encryptionKey: newer, log: false }))
    const lost = without.once('store.lost')
    await without.start()
    expect((await lost).error).toContain('ENCRYPTION_KEY_UNKNOWN')
    await without.stop()
    expect(texts).toEqual([])
    const both = declare(new Sluice({ store, encryptionKey: [newer, KEY], log: false }))
    onTestFinished(() => both.stop())
    const done = both.once('run.done')
    await both.start()
    // A process without the key deferred the run.
    await both.admin.lanes.runNow('f', (await eventsIn(store))[0]?.id ?? '')
    await done
    expect(texts).toEqual([BODY])
  })

  it('needs a key, and no sender can pretend that its payload is encrypted', async () => {
    await expect(opened(sealed)).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    const { app } = await opened(() => {}, { encryptionKey: KEY })
    await expect(app.publish({ type: 'ping', attributes: { sluicesealed: true } })).rejects.toMatchObject({
      code: 'EVENT_INVALID',
    })
  })
})
