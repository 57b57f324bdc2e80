// A misspelled flow, source or limit matches nothing. The commands say so instead of printing an empty result.
import { describe, expect, it } from 'vitest'
import { APP, folderWith, serve, type Served } from './commands-rig.ts'
import { Program } from './program.ts'

type Case = readonly [code: number, args: readonly string[], text: RegExp]

async function tryAll(server: Served, cases: readonly Case[]): Promise<void> {
  const tried = cases.map(async ([code, args, text]) => {
    const ran = await server.sluice(...args)
    expect([args, ran.code, ran.stdout, ran.stderr]).toEqual([args, code, '', expect.stringMatching(text)])
  })
  await Promise.all(tried)
}

describe('a misspelled name', () => {
  it('of a flow is an error that names the flow which was probably meant', async () => {
    const server = await serve(folderWith({ 'sluice.config.ts': APP }))
    await tryAll(server, [
      [3, ['lanes', '--flow=fials'], /^NOT_FOUND: There is no flow "fials"\. Did you mean fails\?\n$/],
      [3, ['dead', '--flow=other'], /^NOT_FOUND: There is no flow "other"\. sluice flows lists all flows\.\n$/],
      [3, ['dead', 'count', '--flow=fials'], /Did you mean fails\?/],
      [3, ['dead', 'retry', '--flow=fials'], /Did you mean fails\?/],
      [3, ['explain', 'fials', 'ada'], /Did you mean fails\?/],
      [3, ['lanes', 'hold', 'fials', 'ada'], /Did you mean fails\?/],
      [3, ['flows', 'pause', 'fials'], /Did you mean fails\?/],
      [3, ['flows', 'retire', 'fials'], /Did you mean fails\?/],
      [3, ['replay', 'start', '--all', '--into=fials'], /Did you mean fails\?/],
      [3, ['tail', '--flow=fials'], /Did you mean fails\?/],
      [2, ['explain', 'fails'], /^fails is a flow, so explain needs a key as well: sluice explain fails <key>\.\n$/],
      [3, ['explain', '01m7v4j16q325p1e5rd7bb4wfd'], /^NOT_FOUND: There is no event/],
    ])
  })

  it('of a limit or a source is an error or a question', async () => {
    const server = await serve(folderWith({ 'sluice.config.ts': APP }))
    await tryAll(server, [
      [3, ['limits', 'pause', 'clals'], /^NOT_FOUND: There is no limit "clals"\. Did you mean calls\?\n$/],
      [3, ['sources', 'refused', 'gihub'], /^NOT_FOUND: There is no source "gihub"\. Did you mean github\?\n$/],
      [
        0,
        ['events', '--source=gihub'],
        /^The app declares no source "gihub"\. Did you mean github\?\nThere are no events/,
      ],
      [3, ['send', 'gihub'], /Did you mean github\?|Use one of these: shop, github/],
      [2, ['events', '--limit=0'], /^REQUEST_INVALID: --limit must be a number from 1 to 1000\.\n$/],
      [2, ['keys', 'create', 'ada', '--role=admin'], /^--role must be read, .* or operate; got "admin"\.\n$/],
      [3, ['endpoints', 'show', 'nope'], /^NOT_FOUND: There is no endpoint "nope"/],
    ])
  })

  it('does not hide what is left of a removed flow', async () => {
    const folder = folderWith({ 'sluice.config.ts': APP })
    const first = await serve(folder)
    await first.publish('late', 'ada')
    await first.program.stop()
    const renamed = folderWith({
      'sluice.config.ts': APP.replaceAll("'waits'", "'other'").replace('app.db', `${folder}/app.db`),
    })
    const later = await serve(renamed)
    const explained = await later.sluice('explain', 'waits', 'ada')
    expect([explained.code, explained.stdout]).toEqual([
      0,
      expect.stringContaining('waits for its window with 1 event'),
    ])
    expect(await later.sluice('dead', '--flow=waits')).toMatchObject({
      code: 0,
      stderr: 'There are no dead letters.\n',
    })
  })
})

describe('publish', () => {
  it('says that no flow takes the event, and that standard input has none', async () => {
    const server = await serve(folderWith({ 'sluice.config.ts': APP }))
    const unwanted = await server.sluice('publish', 'order.piad', '--id=o7')
    expect(unwanted).toMatchObject({ code: 0, stdout: 'o7 stored\n', stderr: 'no flow wants this event\n' })
    expect(await server.sluice('publish')).toMatchObject({ code: 0, stderr: 'Standard input has no events.\n' })
  })
})

describe('sluice', () => {
  it.each([
    [['-v'], /^\d+\.\d+\.\d+\n$/],
    [['--version', '--json'], /^\{"version":"\d+\.\d+\.\d+"\}\n$/],
    [['-h'], /^sluice <command>/],
    [['lanes', 'show', '-h'], /^sluice lanes show/],
  ] as const)('takes the usual options: %j', async (args, text) => {
    const program = new Program(folderWith({}), args)
    expect([await program.exit, program.text]).toEqual([0, expect.stringMatching(text)])
  })
})
