// `sluice sources`: the sources, the requests they refused, and the secret that came by handshake.
import { toPath } from '../api-client.ts'
import { callAndPrint, callAndPrintPage, YES_OPTION, type Command } from '../command.ts'
import { confirmOrExit } from '../confirm.ts'
import { escapeText, formatTime, type Column } from '../output.ts'

interface Source {
  readonly name: string
  readonly scheme: string
  readonly path: string
}

interface Refused {
  readonly at: number
  readonly code: string
  readonly what: string
  readonly fix: string
  readonly address: string
}

const SOURCES: readonly Column<Source>[] = [
  { title: 'source', cell: ({ name }) => name },
  { title: 'scheme', cell: ({ scheme }) => scheme },
  { title: 'path', cell: ({ path }) => path },
]

const REFUSED: readonly Column<Refused>[] = [
  { title: 'at', cell: ({ at }) => formatTime(at) },
  { title: 'from', cell: ({ address }) => address },
  { title: 'code', cell: ({ code }) => code },
  { title: 'what', cell: ({ what, fix }) => `${what} ${fix}` },
]

export const sources: readonly Command[] = [
  {
    name: 'sources list',
    description: 'list sources and their paths',
    run: (scene) =>
      callAndPrintPage(scene, { method: 'GET', path: '/v1/sources' }, (items: readonly Source[]) =>
        scene.output.table(SOURCES, items, 'The app has no sources.'),
      ),
  },
  {
    name: 'sources refused',
    positionals: ['<source>'],
    description: 'list the requests that a source refused, and why; - for those to no source',
    run: (scene) => {
      const path = toPath('v1/sources', scene.args.words[0] ?? '', 'refused')
      return callAndPrintPage(scene, { method: 'GET', path }, (items: readonly Refused[]) =>
        scene.output.table(REFUSED, items, 'Nothing was refused.'),
      )
    },
  },
  {
    name: 'sources secret',
    positionals: ['<source>'],
    description: 'print the secret that came by handshake, to compare with that of the provider',
    run: (scene) => {
      const path = toPath('v1/sources', scene.args.words[0] ?? '', 'show-secret')
      return callAndPrint(scene, { method: 'POST', path, body: {} }, ({ secret }: { readonly secret?: string }) => {
        scene.output.print(escapeText(secret ?? 'No secret has come by handshake.'))
      })
    },
  },
  {
    name: 'sources forget',
    positionals: ['<source>'],
    description: 'forget the secret; the source waits for another handshake',
    options: { yes: YES_OPTION },
    run: async (scene) => {
      const [name = ''] = scene.args.words
      const no = await confirmOrExit(scene, `${name} refuses everything until another handshake comes. Go on?`)
      if (no !== undefined) return no
      const path = toPath('v1/sources', name, 'forget-secret')
      return callAndPrint(scene, { method: 'POST', path, body: {} }, () => scene.output.print('Done.'))
    },
  },
]
