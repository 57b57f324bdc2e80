// Endpoints by the command line, on a real file: added, listed, paused, resumed, rotated, triggered and removed.
import { expect, test } from 'vitest'
import { folderWith, run, type Ran } from './commands-rig.ts'

const APP = `
import { Sluice } from '${new URL('../../src/index.ts', import.meta.url).href}'
const app = new Sluice({ store: 'sqlite:app.db', key: '${Buffer.alloc(32, 7).toString('base64')}' })
app.delivery('versions', { on: 'version.*', window: { quiet: '1h' } })
export default app
`

test('the life of an endpoint', async () => {
  const folder = folderWith({ 'sluice.config.ts': APP })
  const sluice = (...args: readonly string[]): Promise<Ran> => run(folder, ['endpoints', ...args])
  const added = await sluice('add', 'https://hook.example.com/in', '--types=version.new,version.old', '--name=Ada')
  expect(added).toMatchObject({ code: 0, stdout: expect.stringMatching(/^whsec_\S+\n$/) })
  const listed = await sluice('list', '--json')
  expect(listed).toMatchObject({ code: 0, stderr: '' })
  const { items } = listed.json as { items: { id: string; eventFilter: string[] }[] }
  expect(items).toMatchObject([{ name: 'Ada', eventFilter: ['version.new', 'version.old'], active: true }])
  const id = items[0]?.id ?? ''
  expect((await sluice('list')).stdout).toContain(id)
  expect((await sluice('deliveries', id)).stderr).toBe('Nothing was delivered to it yet.\n')
  expect((await sluice('pause', id)).stdout).toBe('Done.\n')
  expect((await sluice('list')).stdout).toContain('paused')
  expect((await sluice('resume', id)).stdout).toBe('Done.\n')
  expect((await sluice('rotate-secret', id)).stdout).toMatch(/^whsec_/)
  expect((await sluice('trigger')).stdout).toBe('0 batches due.\n')
  expect((await sluice('remove', id, '--yes')).stdout).toBe('Done. 0 events dropped.\n')
  expect((await sluice('list')).stderr).toBe('There are no endpoints.\n')
  expect((await sluice('add', 'http://10.0.0.1/')).stderr).toContain('url')
})
