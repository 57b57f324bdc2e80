// R3: an operator can see the secret that came by handshake, because the first handshake sets it, even a stranger's.
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { openStore, type Store } from '../../src/index.ts'
import type { Receiving } from '../../src/app/receiving.ts'
import { github } from '../../src/sources/github.ts'
import { notion } from '../../src/sources/notion.ts'
import { VirtualClock } from '../../src/testing/index.ts'
import { receivingOn, writingBy } from './receiving-scene.ts'
import { KEY, NOW, SECRET } from './scene.ts'

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
  receiving.source('github', github({ secret: SECRET }), {})
  return receiving
}

async function shake(receiving: Receiving, token: string): Promise<number> {
  const body = JSON.stringify({ verification_token: token })
  return (await receiving.fetch(new Request('http://hooks.test/in/notion', { method: 'POST', body }), {})).status
}

async function audited(): Promise<readonly (readonly [string, string])[]> {
  const { items } = await store.find({ kind: 'audit', filter: {}, cursor: '', n: 10 })
  return items.map(({ who, what }) => [who, what])
}

describe('the secret of a source', () => {
  it('is shown once it has come, in any process, and each read is in the audit log', async () => {
    const receiving = withNotion()
    expect(await receiving.admin.secret('notion', 'ada')).toBeUndefined()
    expect(await shake(receiving, 'secret_real')).toBe(200)
    expect(await receiving.admin.secret('notion', 'ada')).toBe('secret_real')
    expect(await withNotion().admin.secret('notion', 'bo')).toBe('secret_real')
    expect(await audited()).toEqual([
      ['bo', 'show secret of source notion'],
      ['ada', 'show secret of source notion'],
    ])
  })

  it("lets an operator recognise a handshake of a stranger, and the true sender's is accepted once the secret is forgotten", async () => {
    const receiving = withNotion()
    await shake(receiving, 'of a stranger')
    expect(await shake(receiving, 'secret_real')).toBe(403)
    expect(await receiving.admin.secret('notion')).toBe('of a stranger')
    await receiving.admin.forgetSecret('notion')
    expect(await receiving.admin.secret('notion')).toBeUndefined()
    await shake(receiving, 'secret_real')
    expect(await receiving.admin.secret('notion')).toBe('secret_real')
  })

  it('is not shown if the read cannot be recorded, or the key is missing', async () => {
    await shake(withNotion(), 'secret_real')
    const silent = withNotion(writingBy(store, () => Promise.reject(new Error('disk'))))
    await expect(silent.admin.secret('notion')).rejects.toThrow('disk')
    const another = withNotion(store, Buffer.alloc(32, 'another').toString('base64'))
    await expect(another.admin.secret('notion')).rejects.toMatchObject({ code: 'ENCRYPTION_KEY_UNKNOWN' })
    expect(await audited()).toEqual([])
  })

  it('is not shown if it is configured, nor an older one from a handshake; an unknown source is rejected', async () => {
    const receiving = withNotion()
    expect(await receiving.admin.secret('github')).toBeUndefined()
    await shake(receiving, 'secret_of_before')
    const given = receivingOn(store, { clock, key: KEY })
    given.source('notion', notion({ secret: 'given' }), {})
    expect(await given.admin.secret('notion')).toBeUndefined()
    await expect(receiving.admin.secret('notoin')).rejects.toThrow(
      'secret: there is no source "notoin"; there are notion, github',
    )
  })
})
