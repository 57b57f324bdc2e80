// Before a key exists, every local user may operate a server under `sluice dev`, and no user one under `sluice start`.
import { describe, expect, it } from 'vitest'
import { APP, folderWith, Program, run, serve } from './commands-rig.ts'

const CLOSED = APP.replace(", admin: { open: 'loopback' }", '')
const LISTENS = /listens on (http:\S+)/

interface Report {
  readonly checks: readonly { readonly name: string; readonly state: string; readonly what: string }[]
}

/** The findings of doctor about keys. */
async function looked(config: string): Promise<unknown> {
  const ran = await run(folderWith({ 'sluice.config.ts': config }), ['doctor', '--json'])
  return (ran.json as Report).checks.find(({ name }) => name === 'keys')
}

describe('the admin API before there is a key', () => {
  it('requires a key under sluice start, and says how to create one', async () => {
    const folder = folderWith({ 'sluice.config.ts': CLOSED })
    const server = await serve(folder)
    expect((await fetch(`${server.url}/v1/flows`)).status).toBe(401)
    await server.program.said(/(the admin API has no key yet)/)
    const asked = await server.sluice('flows')
    expect([asked.code, asked.stderr]).toEqual([4, expect.stringMatching(/KEY_MISSING.*has none yet.*stop the server/)])
    await server.program.stop()
    const secret = (await run(folder, ['keys', 'create', 'ada', '--role=operate'])).stdout.trim()
    const again = await serve(folder)
    expect((await fetch(`${again.url}/v1/flows`, { headers: { authorization: `Bearer ${secret}` } })).status).toBe(200)
    expect(again.program.text).not.toContain('the admin API has no key yet')
  })

  it('is open to local callers under sluice dev, but not to an app that gets the variable in another way', async () => {
    const folder = folderWith({ 'sluice.config.ts': CLOSED })
    const dev = new Program(folder, ['dev', '--port=0'], {})
    const url = await dev.said(LISTENS)
    expect((await fetch(`${url}/v1/flows`)).status).toBe(200)
    const report = (await run(folder, ['doctor', '--json', `--url=${url}`])).json as Report
    expect(report.checks.find(({ name }) => name === 'keys')?.what).toMatch(/accepts calls from this machine\.$/)
    await dev.stop()
    for (const value of ['1', 'true', '1234567']) {
      const start = new Program(folder, ['start', '--port=0'], { SLUICE_DEV: value })
      expect((await fetch(`${await start.said(LISTENS)}/v1/flows`)).status).toBe(401)
      await start.stop()
    }
  })

  it('is reported by doctor: closed, open to this machine, or open to everything that a proxy forwards', async () => {
    const listen = "export const listen = { host: '0.0.0.0', port: 9 }"
    expect(await looked(`${CLOSED}\n${listen}`)).toMatchObject({
      state: 'look',
      what: expect.stringMatching(/rejects every call/) as string,
    })
    expect(await looked(APP)).toMatchObject({
      state: 'look',
      what: expect.stringMatching(/accepts calls from this machine\.$/) as string,
    })
    expect(await looked(`${APP}\n${listen}`)).toMatchObject({
      state: 'wrong',
      what: expect.stringMatching(/proxy/) as string,
    })
  })
})
