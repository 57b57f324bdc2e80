// A test with signed requests in both directions: one to a source, and one from a delivery.
import { createHmac, randomBytes } from 'node:crypto'
import { Sluice } from 'sluice'
import { github } from 'sluice/sources'
import { testApp } from 'sluice/testing'
import { Webhook } from 'standardwebhooks'
import { expect, it } from 'vitest'

const secret = 'the one that GitHub has'

function push(delivery: string, signedWith = secret): Request {
  const body = JSON.stringify({ repository: { full_name: 'octo/app' } })
  const headers = {
    'content-type': 'application/json',
    'x-github-event': 'push',
    'x-github-delivery': delivery,
    'x-hub-signature-256': `sha256=${createHmac('sha256', signedWith).update(body).digest('hex')}`,
  }
  return new Request('https://hooks.example/in/github', { method: 'POST', headers, body })
}

it('turns signed pushes into one signed webhook', async () => {
  const app = new Sluice({ store: 'memory:', log: false, encryptionKey: randomBytes(32).toString('base64') })
  app.source('github', github({ secret }))
  app.flow('announce', {
    on: 'github/push',
    key: (event) => event.subject,
    debounce: '2s',
    run: (run) => {
      run.publish({ type: 'build.started', subject: run.key, data: { pushes: run.events.length } })
    },
  })
  app.delivery('builds', { on: 'build.*' })

  const verified: unknown[] = []
  let hook: Webhook | undefined
  const t = await testApp(app, {
    // Receivers compare the signed time with their own clock.
    now: Date.now(),
    fetch: async (request) => {
      verified.push(hook?.verify(await request.text(), Object.fromEntries(request.headers)))
      return new Response()
    },
  })
  hook = new Webhook((await app.endpoints.create({ url: 'https://subscriber.example/hook' })).secret)

  expect((await app.fetch(push('first'))).status).toBe(202)
  expect((await app.fetch(push('second'))).status).toBe(202)
  expect((await app.fetch(push('forged', 'another secret'))).status).toBe(401)
  await t.advance('2s')
  expect(verified).toMatchObject([{ data: { events: [{ subject: 'octo/app', data: { pushes: 2 } }] } }])
  await t.stop()
})
