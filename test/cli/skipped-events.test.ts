// A 202, and then no run: every command that shows an event says why no flow took it.
import { describe, expect, it } from 'vitest'
import { folderWith, Program, serve } from './commands-rig.ts'

const SRC = new URL('../../src/', import.meta.url)
const CONFIG = `
import { Sluice } from '${new URL('index.ts', SRC).href}'
import { github, stripe } from '${new URL('sources/index.ts', SRC).href}'
const app = new Sluice({ store: 'sqlite:app.db', log: false, admin: { open: 'loopback' } })
app.source('stripe', stripe({ secret: 'stripe-secret-0123456789' }))
app.source('github', github({ secret: 'github-secret-0123456789' }))
app.flow('sync-customer', { on: 'stripe/customer.*', key: (event) => event.subject, run: () => {} })
export default app
`
const SKIPPED = 'skipped by sync-customer: no key'
const UNWANTED = 'no flow wants this event'

/** An object without an id has no subject, and so no key. */
const body = (type: string): string =>
  JSON.stringify({ id: `evt_${type}`, object: 'event', type, created: 1, data: { object: { object: 'x' } } })

interface Sent {
  readonly events: readonly { readonly id: string }[]
  readonly notes: readonly string[]
}

describe('an event that no flow takes', () => {
  it('is explained by send, events list, events show, explain and tail', async () => {
    const server = await serve(folderWith({ 'sluice.config.ts': CONFIG }))
    const tail = new Program(folderWith({}), ['tail', '--verbose'], { SLUICE_URL: server.url })
    await tail.said(/(Watching)/)
    const skipped = await server.sluice('send', 'stripe', `--data=${body('customer.created')}`)
    expect([skipped.code, skipped.stdout]).toEqual([0, expect.stringMatching(new RegExp(`^202 .*\n${SKIPPED}\n$`))])
    const unwanted = (await server.sluice('send', 'stripe', `--data=${body('invoice.paid')}`, '--json')).json as Sent
    expect(unwanted.notes).toEqual([UNWANTED])
    const many = await server.sluice('send', 'stripe', `--data=${body('payout.paid')}`, '--count=2')
    expect(many.stdout).toContain(`last request: ${UNWANTED}`)
    await tail.said(new RegExp(`customer.created +\\((${SKIPPED})\\)`))
    await tail.said(new RegExp(`invoice.paid +\\((${UNWANTED})\\)`))
    // The format of GitHub's responses has no place for the ids of events.
    const push = (await server.sluice('send', 'github', '--type=push')).stdout
    expect(push).toMatch(new RegExp(`^202 stored \\S+\n${UNWANTED}\n$`))
    const id = unwanted.events[0]?.id ?? ''
    expect((await server.sluice('events')).stdout).toContain(SKIPPED)
    expect((await server.sluice('events', 'show', id)).stdout).toMatch(new RegExp(`note +${UNWANTED}`))
    expect((await server.sluice('explain', id)).stdout).toMatch(
      new RegExp(`^Event ${id} \\(stripe/invoice.paid\\) arrived .*\n${UNWANTED}\\.\n$`),
    )
    expect((await server.sluice('explain', 'sync-customer', 'cus_1')).stdout).toContain('the flow found no key in 1 of')
  })

  it('is named by sluice dev while the app runs, whatever its log level is', async () => {
    const folder = folderWith({ 'sluice.config.ts': CONFIG })
    const dev = new Program(folder, ['dev', '--port=0'], {})
    const url = await dev.said(/listens on (http:\S+)/)
    const send = new Program(folder, ['send', 'stripe', `--data=${body('customer.created')}`], { SLUICE_URL: url })
    expect(await send.exit).toBe(0)
    await dev.said(new RegExp(`event \\S+ \\(stripe/customer.created\\): (${SKIPPED})`))
    const other = new Program(folder, ['send', 'stripe', `--data=${body('invoice.paid')}`], { SLUICE_URL: url })
    expect(await other.exit).toBe(0)
    await dev.said(new RegExp(`event \\S+ \\(stripe/invoice.paid\\): (${UNWANTED})`))
  })
})
