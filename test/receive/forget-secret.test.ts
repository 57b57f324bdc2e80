// R3: an operator can make a source forget the secret that came by handshake. The source then takes the next one.
import { createHmac } from 'node:crypto'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { openStore, type Store } from '../../src/index.ts'
import type { Receiving } from '../../src/app/receiving.ts'
import { github } from '../../src/sources/github.ts'
import { notion } from '../../src/sources/notion.ts'
import { VirtualClock } from '../../src/testing/index.ts'
import { receivingOn, writingBy } from './receiving-scene.ts'
import { KEY, NOW, problemOf, SECRET } from './scene.ts'

const [OLD, NEW] = ['secret_old', 'secret_new']
const [TAKEN, PENDING, WRONG] = ['200', '403 SOURCE_PENDING', '401 SIGNATURE_WRONG']

let clock: VirtualClock
let store: Store

beforeEach(async () => {
  clock = new VirtualClock(NOW)
  store = await openStore('memory:', { clock })
  onTestFinished(() => store.close())
})

function withNotion(on: Store = store, key = KEY): Receiving {
  const receiving = receivingOn(on, { clock, key })
  receiving.source('notion', notion(), {})
  return receiving
}

async function post(receiving: Receiving, body: string, headers = {}): Promise<string> {
  const response = await receiving.fetch(
    new Request('http://hooks.test/in/notion', { method: 'POST', body, headers }),
    {},
  )
  return response.ok ? String(response.status) : `${response.status} ${(await problemOf(response)).code}`
}

function shake(receiving: Receiving, token: string): Promise<string> {
  return post(receiving, JSON.stringify({ verification_token: token }))
}

function signed(receiving: Receiving, token: string): Promise<string> {
  const event = JSON.stringify({ id: 'e1', type: 'page.updated', entity: { id: 'p1' } })
  const signature = `sha256=${createHmac('sha256', token).update(event).digest('hex')}`
  return post(receiving, event, { 'x-notion-signature': signature })
}

describe('a forgotten secret', () => {
  it('is invalid at once; the source takes the next handshake, and keeps it', async () => {
    const receiving = withNotion()
    await shake(receiving, OLD)
    expect(await signed(receiving, OLD)).toBe(TAKEN)
    expect(await receiving.admin.forgetSecret('notion', 'ada')).toBe('forgotten')
    expect(await signed(receiving, OLD)).toBe(PENDING)
    expect(await shake(receiving, NEW)).toBe(TAKEN)
    expect(await signed(receiving, NEW)).toBe(TAKEN)
    expect(await signed(receiving, OLD)).toBe(WRONG)
    expect(await shake(receiving, OLD)).toBe('403 HANDSHAKE_REFUSED')
    const { items } = await store.find({ kind: 'audit', filter: {}, cursor: '', n: 10 })
    expect(items).toMatchObject([{ who: 'ada', what: 'forget secret of source notion' }])
  })

  it('is not restored by a request in progress', async () => {
    const gate = Promise.withResolvers<void>()
    const reached = Promise.withResolvers<void>()
    let isHeld = false
    const slow = new Proxy(store, {
      get: (target, name): unknown => {
        const member: unknown = Reflect.get(target, name)
        if (typeof member !== 'function') return member
        if (name !== 'readDocs') return member.bind(target)
        return async (call: Parameters<Store['readDocs']>[0]) => {
          const read = await target.readDocs(call)
          if (isHeld) {
            isHeld = false
            reached.resolve()
            await gate.promise
          }
          return read
        }
      },
    })
    const receiving = withNotion(slow)
    await shake(receiving, OLD)
    isHeld = true
    const before = signed(receiving, OLD)
    await reached.promise
    expect(await receiving.admin.forgetSecret('notion')).toBe('forgotten')
    gate.resolve()
    // That request had arrived before.
    expect(await before).toBe(TAKEN)
    expect(await signed(receiving, OLD)).toBe(PENDING)
  })

  it('is forgotten by other processes within five seconds', async () => {
    const [one, other] = [withNotion(), withNotion()]
    await shake(one, OLD)
    expect(await signed(other, OLD)).toBe(TAKEN)
    await one.admin.forgetSecret('notion')
    clock.advance(5_000)
    expect(await signed(other, OLD)).toBe(PENDING)
    await shake(one, NEW)
    expect(await signed(other, NEW)).toBe(TAKEN)
  })

  it('may be one that no process can decrypt any more', async () => {
    await shake(withNotion(), OLD)
    const receiving = withNotion(store, Buffer.alloc(32, 'w').toString('base64'))
    expect(await signed(receiving, OLD)).toBe('503 STORE_FAILED')
    expect(await receiving.admin.forgetSecret('notion')).toBe('forgotten')
    expect(await signed(receiving, OLD)).toBe(PENDING)
    await shake(receiving, NEW)
    expect(await signed(receiving, NEW)).toBe(TAKEN)
  })

  it('is forgotten even if it was replaced meanwhile', async () => {
    let isFirst = true
    const other = withNotion()
    const receiving = withNotion(
      writingBy(store, async (call) => {
        const isForgetting = isFirst && call.writes[0]?.body === undefined
        if (isForgetting) {
          isFirst = false
          await other.admin.forgetSecret('notion')
          await shake(other, NEW)
        }
        return store.writeDocs(call)
      }),
    )
    await shake(receiving, OLD)
    expect(await receiving.admin.forgetSecret('notion')).toBe('forgotten')
    expect([await signed(receiving, OLD), await signed(receiving, NEW)]).toEqual([PENDING, PENDING])
  })

  it('stays valid if the store fails, until it is forgotten', async () => {
    let isDown = false
    const receiving = withNotion(
      writingBy(store, (call) => (isDown ? Promise.reject(new Error('down')) : store.writeDocs(call))),
    )
    await shake(receiving, OLD)
    isDown = true
    await expect(receiving.admin.forgetSecret('notion')).rejects.toThrow('down')
    expect(await signed(receiving, OLD)).toBe(TAKEN)
  })
})

describe('a source', () => {
  it('without a secret reports that there is nothing to forget', async () => {
    const receiving = withNotion()
    receiving.source('github', github({ secret: SECRET }), {})
    expect(await receiving.admin.forgetSecret('notion')).toBe('none')
    expect(await receiving.admin.forgetSecret('github')).toBe('none')
    await shake(receiving, OLD)
    expect(
      await Promise.all([receiving.admin.forgetSecret('notion'), receiving.admin.forgetSecret('notion')]),
    ).toContain('forgotten')
    expect(await receiving.admin.forgetSecret('notion')).toBe('none')
  })

  it('that does not exist is an error that lists the existing ones', async () => {
    await expect(withNotion().admin.forgetSecret('notoin')).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringContaining('there is no source "notoin"') as unknown,
    })
    await expect(receivingOn(store, { clock }).admin.forgetSecret('x')).rejects.toThrow('there is none')
  })

  it('keeps the secrets of other sources', async () => {
    const receiving = withNotion()
    receiving.source('second', notion(), {})
    await shake(receiving, OLD)
    expect(await receiving.admin.forgetSecret('second')).toBe('none')
    expect(await signed(receiving, OLD)).toBe(TAKEN)
  })
})
