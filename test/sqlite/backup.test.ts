// Tests a backup of the file while a process works on it, and the app that runs from the backup.
import { fork, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openStore, Sluice } from '../../src/index.ts'
import { backupSqlite } from '../../src/store/sqlite/backup.ts'
import { ownFolder } from '../temporary-folder.ts'

const CHILD = fileURLToPath(new URL('./backup-child.ts', import.meta.url))
const BACKUP = fileURLToPath(new URL('../../src/store/sqlite/backup.ts', import.meta.url))

function scratchFolder(): string {
  const folder = ownFolder()
  return folder
}

/** Runs the backup in a process of its own, like the command line does. */
function backedUp(file: string, to: string): void {
  const script = `import { backupSqlite } from ${JSON.stringify(BACKUP)}; backupSqlite(${JSON.stringify(file)}, ${JSON.stringify(to)})`
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script])
  if (status !== 0) throw new Error(String(stderr))
}

async function acknowledgedBy(child: ChildProcess, ids: string[], n: number): Promise<void> {
  while (ids.length < n) await once(child, 'message')
}

describe('backup', () => {
  test('under load, the copy contains every event acknowledged before, and the events run from it', async () => {
    const folder = scratchFolder()
    const file = join(folder, 'live.db')
    const child = fork(CHILD, [file])
    onTestFinished(() => void child.kill('SIGKILL'))
    const acknowledged: string[] = []
    child.on('message', (id: string) => void acknowledged.push(id))
    for (let round = 0; round < 3; round++) {
      await acknowledgedBy(child, acknowledged, (round + 1) * 1_500)
      const before = [...acknowledged]
      const to = join(folder, `copy-${round}.db`)
      backedUp(file, to)
      const store = await openStore(`sqlite:${to}`)
      for (const id of before) expect((await store.get({ kind: 'events', id })).item?.id).toBe(id)
      await store.close()
    }
    child.send('stop')
    await once(child, 'exit')
    const app = new Sluice({ store: `sqlite:${join(folder, 'copy-2.db')}`, log: false })
    app.flow('f', { on: 'ping', key: (event) => event.subject, run: () => {} })
    const ran = new Set<string>()
    app.on('run.done', ({ key }) => void ran.add(key))
    await app.start()
    await app.publish({ type: 'ping', subject: 'after' })
    while (!ran.has('after')) await app.once('run.done')
    expect(await app.publish({ type: 'ping', id: acknowledged[0] ?? '', subject: 'x' })).toMatchObject([
      { kind: 'conflict' },
    ])
    await app.stop()
  })

  test('only the owner can read the copy', async () => {
    const folder = scratchFolder()
    const [file, to] = [join(folder, 'live.db'), join(folder, 'copy.db')]
    await (await openStore(`sqlite:${file}`)).close()
    chmodSync(file, 0o644)
    backupSqlite(file, to)
    expect((statSync(to).mode & 0o777).toString(8)).toBe('600')
  })

  test('nothing is overwritten, and no partial copy is left', async () => {
    const folder = scratchFolder()
    const [file, to] = [join(folder, 'live.db'), join(folder, 'copy.db')]
    await (await openStore(`sqlite:${file}`)).close()
    expect(backupSqlite(file, to)).toMatchObject({ file: to, events: 0 })
    expect(() => backupSqlite(file, to)).toThrow('already exists. Choose another name.')
    expect(() => backupSqlite(join(folder, 'none.db'), join(folder, 'x.db'))).toThrow('STORE_MISSING')
    writeFileSync(join(folder, 'other.txt'), 'no database at all')
    expect(() => backupSqlite(join(folder, 'other.txt'), join(folder, 'y.db'))).toThrow('STORE_NOT_A_DATABASE')
    expect(existsSync(join(folder, 'y.db')) || existsSync(join(folder, 'y.db.unfinished'))).toBe(false)
  })
})
